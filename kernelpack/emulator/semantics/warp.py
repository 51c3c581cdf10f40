"""Exchange between the lanes of a warp (PTX ISA 9.7.9.6, 9.7.13.9 to 9.7.13.14)."""

from functools import lru_cache
from typing import Any

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.events import LanesMet
from kernelpack.emulator.machine.lanes import LANE_IDS, Lanes, Mask, constant, to_bits
from kernelpack.emulator.machine.warp import Warp
from kernelpack.emulator.semantics.members import together
from kernelpack.emulator.semantics.table import Form, Handler, control


@control("bar.warp.sync", "9.7.13.2", operands=("b32",))
def warp_barrier(form: Form) -> Handler:
    """Wait for the lanes of the mask."""

    def meet(warp: Warp, here: Mask) -> None:
        whole = here.tobytes() == warp.alive.tobytes()
        warp.cta.machine.bus.emit(LanesMet(warp.agent, None if whole else here))

    return together(form, meet)


@control("elect", "9.7.13.14", operands=("=b32|pred", "b32"), flags=("sync",))
def elect(form: Form) -> Handler:
    """P is true in one lane of the mask, d is its number."""

    def choose(_warp: Warp, mask: Mask) -> tuple[Lanes, Lanes]:
        leader = int(mask.argmax())
        return constant(leader, 32), np.asarray(leader == LANE_IDS)

    return together(form, choose)


@control("shfl.sync", "9.7.9.6", operands=("=b32|pred", "b32", "b32", "b32", "b32"),
         types=("b32",), flags=("up", "down", "bfly", "idx"))  # fmt: skip
def shuffle(form: Form) -> Handler:
    """D = a of another lane, within a segment; p = whether that lane is in the segment."""
    mode = form.one_of(("up", "down", "bfly", "idx"))

    def exchange(warp: Warp, mask: Mask, a: Lanes, b: Lanes, c: Lanes) -> tuple[Lanes, Lanes]:
        source, inside = _sources(mode, b.tobytes(), c.tobytes())
        found = a[source]
        if np.count_nonzero(mask) < len(mask):
            strange = mask & ~mask[source]
            if np.count_nonzero(strange):
                _tell_source(warp, mode, strange, source)
                found = np.where(strange, np.uint32(0xFFFF_FFFF), found)
        return found, inside

    return together(form, exchange)


def _tell_source(warp: Warp, mode: str, strange: Mask, source: Lanes) -> None:
    """Lanes read from one that does not take part: the value is undefined, here all ones.

    The last steps of a reduction do so with `down` (and of a scan with `up`) for results that
    nobody uses.
    """
    lane = int(strange.argmax())
    warp.cta.machine.misuse(
        rules.SHUFFLE_PAST_END if mode in ("up", "down") else rules.SHUFFLE_SOURCE,
        f"a lane reads lane {int(source[lane])}, which does not take part: its value is undefined",
        lane=lane,
    )


@lru_cache(maxsize=1024)
def _sources(mode: str, b: bytes, c: bytes) -> tuple[Lanes, Mask]:
    """The lane each lane reads, and whether it is in its segment, for the words of b and c."""
    step = np.frombuffer(b, np.uint32).astype(np.intp) & 31
    control_word = np.frombuffer(c, np.uint32).astype(np.intp)
    segment, clamp = control_word >> 8 & 31, control_word & 31
    highest = (LANE_IDS & segment) | (clamp & ~segment)
    if mode == "up":
        source = LANE_IDS - step
        inside = source >= highest
    else:
        source = {
            "idx": (LANE_IDS & segment) | (step & ~segment),
            "down": LANE_IDS + step,
            "bfly": LANE_IDS ^ step,
        }[mode]
        inside = source <= highest
    return np.where(inside, source, LANE_IDS) & 31, np.asarray(inside)


@control(
    "vote.sync vote.all.sync vote.any.sync vote.uni.sync vote.ballot.sync",
    "9.7.13.9",
    operands=lambda form: (f"={form.type}", "pred", "b32"),
    types=("pred", "b32"),
    flags=("all", "any", "uni", "ballot"),
)
def vote(form: Form) -> Handler:
    """D = what the lanes' predicates say together."""
    modes = ("all", "any", "uni", "ballot")  # before `.sync` too, as older code has it
    mode = next((m for m in form.instruction.modifiers if m in modes), "")

    def count(_warp: Warp, mask: Mask, a: Lanes) -> Lanes:
        yes = a & mask
        if mode == "ballot":
            return constant(to_bits(yes), 32)
        every, some = bool((yes == mask).all()), bool(np.count_nonzero(yes))
        return constant(int({"all": every, "any": some, "uni": every or not some}[mode]), 1)

    return together(form, count)


def _match_operands(form: Form) -> tuple[str, ...]:
    result = "=b32" if form.instruction.modifiers[0] == "any" else "=b32|pred"
    return (result, "T", "b32")


@control(
    "match.any.sync match.all.sync",
    "9.7.13.10",
    operands=_match_operands,
    types=("b32", "b64"),
)
def match(form: Form) -> Handler:
    """D = the lanes with the same value (`any`), or all lanes if all have it (`all`)."""
    everyone = form.instruction.modifiers[0] == "all"

    def compare(_warp: Warp, mask: Mask, a: Lanes) -> object:
        if everyone:
            same = bool((a[mask] == a[mask][0]).all())
            return constant(to_bits(mask) if same else 0, 32), constant(int(same), 1)
        equal = (a[:, None] == a[None, :]) & mask[None, :]
        return np.array([to_bits(row) for row in equal], np.uint32)

    return together(form, compare)


_REDUCTIONS: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@control("redux.sync", "9.7.13.12", operands=("=T", "T", "b32"), types=("u32", "s32", "b32", "f32"),
         flags=(*_REDUCTIONS, "abs", "NaN"))  # fmt: skip
def reduce(form: Form) -> Handler:
    """D = the reduction of a over the lanes; of floats min and max, NaN passed over or kept."""
    operation = form.one_of(_REDUCTIONS)
    function: Any = _REDUCTIONS[operation]
    if form.type == "f32":
        if operation not in ("min", "max"):
            raise form.unsupported(f"`redux.{operation}` of f32")
        if not form.has("NaN"):
            function = {"min": np.fmin, "max": np.fmax}[operation]

    def fold(_warp: Warp, mask: Mask, a: Lanes) -> Lanes:
        chosen = np.abs(a[mask]) if form.has("abs") else a[mask]
        return np.full(len(a), function.reduce(chosen), a.dtype)

    return together(form, fold)
