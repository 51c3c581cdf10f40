"""What is kept of a launch for a replay: a few of its clusters, its machine code, its grid."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from kernelpack.emulator.core import attempt
from kernelpack.emulator.faults import StepLimit
from kernelpack.emulator.limits import cluster_of
from kernelpack.emulator.prepare import place_variables
from kernelpack.emulator.ptx.syntax import Instruction
from kernelpack.emulator.run import Result, run
from kernelpack.predict.blocks import Costs
from kernelpack.predict.inputs import Prepared
from kernelpack.predict.peeks import settled
from kernelpack.predict.recorder import Recorder
from kernelpack.predict.recording import Recording
from kernelpack.predict.watched import Watched
from kernelpack.spec.arch import Arch
from kernelpack.spec.launch import Dim3, Plan
from kernelpack.toolchain.issued import MachineCode, assemble
from kernelpack.toolchain.toolchain import Toolchain

RECORDED_STEPS = 200_000
"""Warp instructions of a cluster that are recorded; what follows is as what came before."""
MANY_STEPS, VERY_MANY_STEPS = 400_000, 2_000_000
"""Warp instructions after which no more clusters are recorded than two, than one."""
CHAIN = 3
"""Clusters that one does after another, where it takes over those that have not begun."""
COUNTED, COUNTED_STEPS = 16, 40_000_000
"""Clusters whose warp instructions are counted, until they are so many together."""
_GOLDEN = 0.618033988749895


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A launch as a replay takes it.

    Attributes:
        plan: the launch, with the cluster that its kernel requires.
        recordings: of a cluster each.
        chain: of a cluster that takes over others until it has done `CHAIN` of them (PTX ISA
            9.7.13.17); None where the kernel takes none over, or where that is long.
        steps: warp instructions of clusters, by their number in the grid.
        code: the machine code, in numbers.
        costs: of the entry's blocks.

    """

    plan: Plan
    recordings: tuple[Recording, ...]
    chain: Recording | None = None
    steps: Mapping[int, int]
    code: MachineCode
    costs: Costs


def sample(launch: Prepared, toolchain: Toolchain) -> Sample:
    """Record a launch.

    Args:
        launch: the launch; its memory is changed.
        toolchain: whose ptxas makes the machine code that is counted.

    Raises:
        KernelpackError: the emulator cannot run the launch, or a cluster of it alone, or one does
            not end.
        CompileError: ptxas refuses the PTX.

    """
    entry = launch.program.entry(launch.plan.entry)
    body = entry.body.instructions
    code = assemble(launch.program.text, entry.name, toolchain, Arch(launch.program.target))
    if launch.addresses is None:
        launch = replace(launch, addresses=place_variables(launch.program, launch.memory))
    recordings = record(launch)
    chain = _chain(launch, recordings[0]) if _takes_over(body) else None
    return Sample(
        plan=replace(launch.plan, cluster=Dim3(*cluster_of(entry, launch.plan))),
        recordings=tuple(settled(one, body) for one in recordings),
        chain=settled(chain, body) if chain else None,
        steps=_steps(launch, recordings),
        code=code,
        costs=Costs(body, code.counts),
    )


def record(launch: Prepared) -> tuple[Recording, ...]:
    """Run some clusters of a launch, each by itself, and keep what they did.

    Raises:
        KernelpackError: as of `sample`.

    """
    found: list[Recording] = []
    steps = 0
    for number in _chosen(_clusters(launch)):
        if steps > (MANY_STEPS if len(found) > 1 else VERY_MANY_STEPS):
            break
        found.append(_record(launch, number))
        steps += found[-1].all_steps
    return tuple(found)


def _clusters(launch: Prepared) -> int:
    """How many clusters the whole grid has."""
    plan = launch.plan
    return prod(plan.grid) // prod(cluster_of(launch.program.entry(plan.entry), plan))


def _chosen(count: int) -> list[int]:
    """Neighbours from the middle, the beginning, the end and the quarters of a grid.

    The middle comes first: where clusters are long, it alone stands for the others. Some pairs
    begin at an odd number: of clusters that share by twos, not each pair does.
    """
    firsts = (count // 2 & ~1, 0, count - 2, count // 4 | 1, 3 * count // 4)
    pairs = (number for first in firsts for number in (first, first + 1))
    return list(dict.fromkeys(number for number in pairs if 0 <= number < count))


def _record(launch: Prepared, cluster: int) -> Recording:
    """A cluster; where it is long its beginning, and how long it is."""
    recorder = Recorder(launch.memory.allocations, cluster)
    done = _run(launch, (cluster,), recorder, RECORDED_STEPS)
    if isinstance(done.error, StepLimit):
        done = _run(launch, (cluster,))
    return recorder.recording(done.raise_on_error().steps)


def _takes_over(body: Sequence[Instruction]) -> bool:
    """Whether clusters do the work of others that have not begun."""
    return any(one.opcode == "clusterlaunchcontrol" for one in body)


def _chain(launch: Prepared, one: Recording) -> Recording | None:
    """A cluster, and those that it takes over, from all over the grid."""
    count = _clusters(launch)
    if count < CHAIN or one.all_steps * CHAIN > MANY_STEPS + RECORDED_STEPS:
        return None
    numbers = sorted({(2 * n + 1) * count // (2 * CHAIN) for n in range(CHAIN)})
    recorder = Recorder(launch.memory.allocations, numbers[0])
    done = _run(launch, numbers, recorder)
    return recorder.recording(done.raise_on_error().steps)


def _steps(launch: Prepared, recordings: Sequence[Recording]) -> dict[int, int]:
    """Warp instructions of clusters that lie apart by no rule that a grid may follow."""
    count = _clusters(launch)
    found = {one.number: one.all_steps for one in recordings}
    if isinstance(attempt.core(), str):
        return found  # no compiled engine: it would take minutes
    for number in (int(n * _GOLDEN % 1 * count) for n in range(1, COUNTED + 1)):
        if number not in found and sum(found.values()) < COUNTED_STEPS:
            found[number] = _run(launch, (number,)).raise_on_error().steps
    return found


def _run(
    launch: Prepared,
    clusters: Sequence[int],
    recorder: Recorder | None = None,
    limit: int = 1 << 40,
) -> Result:
    return run(
        launch.program,
        launch.plan,
        launch.memory,
        checks=(recorder.join,) if recorder else (),
        step_limit=limit,
        watch=Watched(launch.most_steps, launch.watch),
        parameters=launch.parameters,
        addresses=launch.addresses,
        only=clusters,
    )
