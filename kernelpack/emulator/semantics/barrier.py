"""Barriers of a CTA (PTX ISA 9.7.13.1).

A barrier without a count waits for the threads of the CTA that have not exited.
"""

from kernelpack.emulator import rules
from kernelpack.emulator.events import Acquire, Arrived, Release
from kernelpack.emulator.machine.cluster import Cta, NamedBarrier
from kernelpack.emulator.machine.lanes import WIDTH, Lanes, Mask, constant
from kernelpack.emulator.machine.warp import Split, Wait, Warp
from kernelpack.emulator.semantics import access, tensor_memory
from kernelpack.emulator.semantics.table import Form, Handler, control


def _barrier(cta: Cta, number: int) -> NamedBarrier:
    if number not in cta.named:
        barrier = cta.named[number] = NamedBarrier()
        cta.on_leave.append(lambda: _look(cta, barrier))
    return cta.named[number]


def _look(cta: Cta, barrier: NamedBarrier) -> None:
    """Complete the barrier if enough threads have arrived."""
    expected = cta.present if barrier.expected is None else barrier.expected
    if not barrier.arrived or barrier.arrived < expected:
        return
    if barrier.arrived > expected:
        cta.machine.misuse(
            rules.BARRIER_COUNT,
            f"{barrier.arrived} threads arrived at a barrier of {expected}",
        )
    barrier.result[barrier.generation] = barrier.votes
    barrier.result.pop(barrier.generation - 2, None)
    barrier.votes = []
    barrier.arrived = 0
    barrier.place = None
    barrier.generation += 1
    cta.machine.changes += 1


def _come_by(warp: Warp, barrier: NamedBarrier, number: int, form: Form) -> None:
    """Whoever waits at an aligned barrier does so by one instruction; who arrives alone need not.

    The manual asks it of the threads of a warp alone, compute-sanitizer's synccheck of all.
    """
    is_aligned = form.instruction.opcode == "bar" or form.has("aligned")
    place, others_are = barrier.place or (warp.at, is_aligned)
    if place != warp.at and (is_aligned or others_are):
        warp.cta.machine.misuse(
            rules.BARRIER_APART,
            f"other warps wait at barrier {number} by another instruction, and one is aligned",
        )
    barrier.place = warp.at, is_aligned


def arrive(
    warp: Warp, number: int, expected: int | None, lanes: int, waits_by: Form | None = None
) -> int:
    """A warp arrives, and will wait by an instruction or go on; the generation it belongs to."""
    cta = warp.cta
    if number > 15:
        cta.machine.misuse(rules.BARRIER_NUMBER, f"barrier {number} of 0 to 15")
    if expected is not None and (expected % WIDTH or expected == 0):
        cta.machine.misuse(
            rules.BARRIER_COUNT,
            f"a barrier count of {expected}, not a multiple of 32",
        )
    barrier = _barrier(cta, number)
    if barrier.arrived and barrier.expected != expected:
        cta.machine.misuse(
            rules.BARRIER_COUNT,
            f"barrier {number} waits for {barrier.expected} threads, this warp says {expected}",
        )
    barrier.expected = expected
    if waits_by is not None:
        _come_by(warp, barrier, number, waits_by)
    generation = barrier.generation
    tensor_memory.settle(warp)
    cta.machine.bus.emit(Arrived(warp.agent, number, generation, waits_by is not None))
    cta.machine.bus.emit(Release(warp.agent, ("bar", cta.number, number, generation)))
    barrier.arrived += WIDTH if expected is not None else lanes
    _look(cta, barrier)
    return generation


def wait(warp: Warp, number: int, generation: int) -> Wait | None:
    """A wait for the end of a generation; None when it is over."""
    barrier = _barrier(warp.cta, number)
    if barrier.generation != generation:
        warp.cta.machine.bus.emit(Acquire(warp.agent, ("bar", warp.cta.number, number, generation)))
        return None

    def describe() -> str:
        expected = warp.cta.present if barrier.expected is None else barrier.expected
        return f"barrier {number}: {barrier.arrived} of {expected} threads arrived"

    return Wait("barrier", lambda: barrier.generation != generation, describe)


_FLAGS = ("cta", "aligned")


def _number_and_count(values: tuple[Lanes, ...], mask: Mask) -> tuple[int, int | None]:
    count = access.uniform(values[1], mask) if len(values) > 1 else None
    return access.uniform(values[0], mask), count


@control("bar.sync barrier.sync bar.cta.sync barrier.cta.sync", "9.7.13.1",
         operands=("u32", "u32?"), flags=_FLAGS, converged=True, yields=True)  # fmt: skip
def synchronise(form: Form) -> Handler:
    """Arrive and wait for the others."""

    def call(warp: Warp, split: Split, mask: Mask, *values: Lanes) -> Wait | None:
        number, count = _number_and_count(values, mask)
        if split.token is None:
            split.token = arrive(warp, number, count, int(mask.sum()), form)
        waiting = wait(warp, number, split.token)
        if waiting is None:
            split.token = None
        return waiting

    return call


@control("bar.arrive barrier.arrive bar.cta.arrive barrier.cta.arrive", "9.7.13.1",
         operands=("u32", "u32"), flags=_FLAGS, converged=True, yields=True)  # fmt: skip
def arrive_only(_form: Form) -> Handler:
    """Arrive and go on."""

    def call(warp: Warp, _split: Split, mask: Mask, *values: Lanes) -> None:
        number, count = _number_and_count(values, mask)
        arrive(warp, number, count, int(mask.sum()))

    return call


_KINDS = ("popc", "and", "or")


def _reduction_operands(form: Form) -> tuple[str, ...]:
    result = "=u32" if form.type == "u32" else "=pred"
    between = ("u32", "u32") if len(form.instruction.operands) == 4 else ("u32",)
    return (result, *between, "pred")


@control("bar.red barrier.red bar.cta.red barrier.cta.red", "9.7.13.1",
         operands=_reduction_operands, types=("u32", "pred"), flags=(*_FLAGS, *_KINDS),
         converged=True, yields=True)  # fmt: skip
def reduce(form: Form) -> Handler:
    """Arrive with a predicate, wait, and get the reduction over all threads."""
    kind = form.one_of(_KINDS)

    def call(warp: Warp, split: Split, mask: Mask, *values: Lanes) -> Wait | Lanes:
        number, count = _number_and_count(values[:-1], mask)
        if split.token is None:
            barrier = _barrier(warp.cta, number)
            barrier.votes.append((int((values[-1] & mask).sum()), int(mask.sum())))
            split.token = arrive(warp, number, count, int(mask.sum()), form)
        generation = split.token
        waiting = wait(warp, number, generation)
        if waiting is not None:
            return waiting
        split.token = None
        votes = _barrier(warp.cta, number).result[generation]
        yes, total = sum(v[0] for v in votes), sum(v[1] for v in votes)
        if kind == "popc":
            return constant(yes, 32)
        return constant(int(yes == total if kind == "and" else yes > 0), 1)

    return call
