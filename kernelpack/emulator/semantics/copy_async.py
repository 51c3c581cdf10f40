"""`cp.async`: 4 to 16 bytes a thread from global to shared memory (PTX ISA 9.7.9.25.3)."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.faults import Rule
from kernelpack.emulator.machine.lanes import Lanes, Mask
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.models import mbarrier as model
from kernelpack.emulator.semantics import access, copies, mbarrier
from kernelpack.emulator.semantics.copies import Bytewise, Doer, Groups
from kernelpack.emulator.semantics.table import Form, Handler, control


class _AsyncCopies(Groups):
    """The groups of these copies."""


_SECTION = "9.7.9.25.3.1"
_FLAGS = ("shared", "shared::cta", "global", "L2::cache_hint", "L2::64B", "L2::128B", "L2::256B")


def _is_partial(form: Form) -> bool:
    """Whether an operand says how many bytes of the source there are."""
    return len(form.instruction.operands) - form.has("L2::cache_hint") == 4


def _operands(form: Form) -> tuple[str, ...]:
    sizes = ("u32",) if _is_partial(form) else ()
    hint = ("b64",) if form.has("L2::cache_hint") else ()
    return ("@shared", "@global", "#", *sizes, *hint)


def _doer(warp: Warp) -> Doer:
    """The copies of a warp; they write as its threads would (9.7.9.25.3: not an async proxy)."""
    agent = warp.cta.agent(("cp.async", warp.index), f"cp.async of warp {warp.index}")
    return Doer(agent, warp, "cp.async", proxy="generic")


@dataclass(frozen=True, slots=True, eq=False)
class _Copies:
    """The copies that the lanes of one instruction start; `size` bytes each, `wanted` from afar."""

    size: int
    mask: Mask
    to: Lanes
    source: Lanes
    wanted: Lanes

    def run(self, doer: Doer) -> None:
        """Move the bytes; those that are not wanted become zeros."""
        memory = doer.warp.cta.machine.memory
        steps = np.arange(self.size)
        remote = (self.source[self.mask].astype(np.int64) - memory.base)[:, None] + steps
        inside = steps < self.wanted[self.mask][:, None]
        data = np.zeros(remote.shape, np.uint8)
        if inside.any():
            data[inside] = Bytewise(memory, remote[inside]).read(doer)
        for target, offsets, lanes in access.place(doer.warp, self.mask, self.to, "shared"):
            chosen = data if lanes is self.mask or lanes is None else data[lanes[self.mask]]
            where = (offsets.astype(np.intp)[:, None] + steps).reshape(-1)
            Bytewise(target, where).write(chosen.reshape(-1), doer)

    def check(self, warp: Warp) -> None:
        """Alignment, and sizes that make sense."""
        step = np.uint64(self.size - 1)
        misaligned = ((self.to | self.source) & step) != 0
        text = f"cp.async of {self.size} bytes is not aligned to its size"
        self._tell(warp, rules.MISALIGNED_COPY, text, misaligned)
        text = f"cp.async with a source size above {self.size}"
        self._tell(warp, rules.CP_ASYNC_SIZE, text, self.wanted > self.size)

    def _tell(self, warp: Warp, rule: Rule, text: str, bad: Mask) -> None:
        mine = bad & self.mask
        if np.count_nonzero(mine):
            warp.cta.machine.misuse(rule, text, lane=int(mine.argmax()))


@control("cp.async.ca cp.async.cg", _SECTION, operands=_operands, flags=_FLAGS)
def copy(form: Form) -> Handler:
    """Start copies; bytes past the source size are filled with zeros."""
    size, is_partial = form.constant(2), _is_partial(form)
    if size not in (4, 8, 16) or (form.instruction.modifiers[1] == "cg" and size != 16):
        raise form.unsupported(f"cp.async of {size} bytes")

    def call(warp: Warp, _split: Split, mask: Mask, to: Lanes, source: Lanes, *more: Lanes) -> None:
        wanted = more[0] if is_partial else np.full(len(to), size, np.uint32)
        started = _Copies(size, mask.copy(), to, source, wanted)
        started.check(warp)
        doer = _doer(warp)
        copies.in_group(_AsyncCopies, form.instruction.text, doer, lambda: started.run(doer))

    return call


@control("cp.async.commit_group", "9.7.9.25.3.2")
def commit(_form: Form) -> Handler:
    """Close the open group."""
    return lambda warp, _split, _mask: copies.groups(warp, _AsyncCopies).commit()


@control("cp.async.wait_group", "9.7.9.25.3.3", operands=("#",), yields=True)
def wait_group(form: Form) -> Handler:
    """Wait until at most N groups are unfinished."""
    keep = form.constant(0)
    return lambda warp, _split, _mask: copies.groups(warp, _AsyncCopies).finish(warp, keep)


@control("cp.async.wait_all", "9.7.9.25.3.3", yields=True)
def wait_all(_form: Form) -> Handler:
    """Wait for everything."""

    def call(warp: Warp, _split: Split, _mask: Mask) -> None:
        found = copies.groups(warp, _AsyncCopies)
        found.commit()
        found.finish(warp, 0)

    return call


_ARRIVE_FLAGS = ("noinc", "shared", "shared::cta")


@control(
    "cp.async.mbarrier.arrive",
    "9.7.13.15.15",
    operands=("@shared",),
    types=("b64",),
    flags=_ARRIVE_FLAGS,
)
def arrive(form: Form) -> Handler:
    """Arrive when the copies of this thread so far are done.

    Without `.noinc` the arrival is one that was added for it.
    """

    def call(warp: Warp, _split: Split, mask: Mask, at: Lanes) -> None:
        targets = [(lane, *mbarrier.find(warp, int(at[lane]))) for lane in access.each_lane(mask)]
        one = mbarrier.of_all(warp, mask, at)
        if not form.has("noinc"):
            for _, cta, offset in targets:
                cta.mbarriers[offset] = model.begin_async(cta.mbarriers[offset])
        doer, engine = _doer(warp), warp.cta.machine.engine
        found = copies.groups(warp, _AsyncCopies)
        before = [o for group in (*found.committed, found.open) for o in group]

        def effect() -> None:
            for operation in before:
                engine.finish(operation)
            if one and mbarrier.fits(one[0].mbarriers[one[1]], one[2]):
                arrived = partial(model.arrive, count=one[2])
                mbarrier.update(one[0], one[1], doer.agent, arrived)
                return
            together = mbarrier.Together()
            for lane, cta, offset in targets:
                found_there = mbarrier.update(cta, offset, doer.agent, model.arrive)
                together.look(cta, offset, found_there, lane)

        copies.alone(form.instruction.text, doer, effect)

    return call
