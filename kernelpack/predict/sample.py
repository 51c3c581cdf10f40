"""What is kept of a launch for a replay: a few of its clusters, its machine code, its grid."""

from dataclasses import dataclass, replace
from math import prod

from kernelpack.emulator.faults import StepLimit
from kernelpack.emulator.limits import cluster_of
from kernelpack.emulator.prepare import place_variables
from kernelpack.emulator.run import Result, run
from kernelpack.predict.blocks import Costs
from kernelpack.predict.inputs import Prepared
from kernelpack.predict.recorder import Recorder
from kernelpack.predict.recording import Recording
from kernelpack.spec.arch import Arch
from kernelpack.spec.launch import Dim3, Plan
from kernelpack.toolchain.issued import MachineCode, assemble
from kernelpack.toolchain.toolchain import Toolchain

RECORDED_STEPS = 200_000
"""Warp instructions of a cluster that are recorded; what follows is as what came before."""
MANY_STEPS, VERY_MANY_STEPS = 400_000, 2_000_000
"""Warp instructions after which no more clusters are recorded than two, than one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A launch as a replay takes it.

    Attributes:
        plan: the launch, with the cluster that its kernel requires.
        recordings: of a cluster each.
        code: the machine code, in numbers.
        costs: of the entry's blocks.

    """

    plan: Plan
    recordings: tuple[Recording, ...]
    code: MachineCode
    costs: Costs


def sample(launch: Prepared, toolchain: Toolchain) -> Sample:
    """Record a launch.

    Args:
        launch: the launch; its memory is changed.
        toolchain: whose ptxas makes the machine code that is counted.

    Raises:
        KernelpackError: the emulator cannot run the launch, or a cluster of it alone.
        CompileError: ptxas refuses the PTX.

    """
    entry = launch.program.entry(launch.plan.entry)
    code = assemble(launch.program.text, entry.name, toolchain, Arch(launch.program.target))
    return Sample(
        plan=replace(launch.plan, cluster=Dim3(*cluster_of(entry, launch.plan))),
        recordings=record(launch),
        code=code,
        costs=Costs(entry.body.instructions, code.counts),
    )


def record(launch: Prepared) -> tuple[Recording, ...]:
    """Run some clusters of a launch, each by itself, and keep what they did.

    Raises:
        KernelpackError: as of `sample`.

    """
    program, plan = launch.program, launch.plan
    cluster = cluster_of(program.entry(plan.entry), plan)
    placed = launch.addresses
    if placed is None:
        launch = replace(launch, addresses=place_variables(program, launch.memory))
    found: list[Recording] = []
    steps = 0
    for number in _chosen(prod(plan.grid) // prod(cluster)):
        if steps > (MANY_STEPS if len(found) > 1 else VERY_MANY_STEPS):
            break
        found.append(_record(launch, number))
        steps += found[-1].all_steps
    return tuple(found)


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
    done = _run(launch, cluster, recorder, RECORDED_STEPS)
    if isinstance(done.error, StepLimit):
        done = _run(launch, cluster)
    return recorder.recording(done.raise_on_error().steps)


def _run(
    launch: Prepared, cluster: int, recorder: Recorder | None = None, limit: int = 1 << 40
) -> Result:
    return run(
        launch.program,
        launch.plan,
        launch.memory,
        checks=(recorder.join,) if recorder else (),
        step_limit=limit,
        parameters=launch.parameters,
        addresses=launch.addresses,
        only=(cluster,),
    )
