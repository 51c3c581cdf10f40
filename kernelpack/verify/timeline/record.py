"""One launch on the emulator, recorded: bundle and problem → select → call → chart."""

from dataclasses import dataclass

from kernelpack.bundle.reader import Bundle
from kernelpack.emulator.call import call
from kernelpack.emulator.checks import ALL
from kernelpack.emulator.ptx.parser import parse
from kernelpack.emulator.run import Result
from kernelpack.emulator.trace import Recorder
from kernelpack.errors import SelectionError
from kernelpack.spec.arch import preferred
from kernelpack.spec.filter import filtered
from kernelpack.spec.launch import Plan
from kernelpack.spec.nearest import nearest
from kernelpack.spec.select import select
from kernelpack.spec.variant import Variant
from kernelpack.verify import room
from kernelpack.verify.timeline.chart import Chart, chart
from kernelpack.verify.timeline.problem import Problem, check_sizes
from kernelpack.verify.timeline.roles import Functions


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The options of a recording.

    Attributes:
        problem: the kernel and the call.
        keep: an expression over variant ids; selection takes one of those it keeps.
        schedule: the interleaving, by a name that the emulator knows.
        seed: of the choices that it leaves open.
        multiprocessors: of the device; as many as the target's has if None.

    """

    problem: Problem
    keep: str = ""
    schedule: str = "fair"
    seed: int = 0
    multiprocessors: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The recording. If an error ended the run early, the chart shows it up to there."""

    variant: Variant
    plan: Plan
    result: Result
    chart: Chart


def record(bundle: Bundle, wish: Wish) -> Recording:
    """Run the variant that selection takes, and listen.

    Raises:
        SelectionError: the bundle has no variant of the kernel, or none serves the problem.
        ProblemError: a size is not given, or this machine has no room for the arguments.
        KernelpackError: the launch exceeds a limit, or the emulator does not model the kernel.

    """
    variant = _select(bundle, wish)
    room.check_launch(variant, _sizes(variant, wish), wish.problem.name)
    text = bundle.ptx(bundle.find(variant.id).ptx_digest).text
    program, recorder = parse(text), Recorder()
    called = call(
        program,
        variant,
        _sizes(variant, wish),
        wish.problem.inputs(variant),
        checks=(*ALL, recorder.join),
        schedule=wish.schedule,
        seed=wish.seed,
    )
    instructions = program.entry(variant.entry).body.instructions
    return Recording(
        variant=variant,
        plan=called.plan,
        result=called.result,
        chart=chart(recorder.timeline, instructions, Functions.of(text)),
    )


def _select(bundle: Bundle, wish: Wish) -> Variant:
    """Of the variants kept, those of the target to prefer; of these the one selection takes."""
    kernel = wish.problem.kernel
    variants = filtered(bundle.variants(kernel), wish.keep)
    if not variants:
        hint = nearest(kernel, bundle.kernels) or "`kernelpack ls` shows the entries of a bundle"
        raise SelectionError(f"the bundle holds no `{kernel}`", where=str(bundle.path), hint=hint)
    check_sizes(wish.problem, variants[0])
    arch = preferred(v.arch for v in variants)
    fitting = [v for v in variants if v.arch == arch]
    return select(fitting, _sizes(fitting[0], wish), arch.capabilities[0])


def _sizes(variant: Variant, wish: Wish) -> dict[str, float]:
    sm_count = wish.multiprocessors or variant.arch.multiprocessors
    return {**wish.problem.sizes, "sm_count": sm_count}
