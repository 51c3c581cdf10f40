"""Exchange between the lanes of a warp (PTX ISA 9.7.9.6, 9.7.13.8 to 9.7.13.12, 9.7.13.15)."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from kernelpack.emulator.events import LanesMet
from kernelpack.emulator.machine.lanes import LANE_IDS, Lanes, Mask, constant, from_bits, to_bits
from kernelpack.emulator.machine.warp import Split, Wait, Warp
from kernelpack.emulator.semantics.table import Form, Handler, control

Exchange = Callable[..., Any]


def together(exchange: Exchange) -> Handler:
    """A handler that waits until the lanes of its last operand, the member mask, are all here."""

    def call(warp: Warp, split: Split, mask: Mask, *values: Lanes) -> object:
        members = from_bits(int(values[-1][mask.argmax()])) & warp.alive
        if members.tobytes() != mask.tobytes():
            waiting = _apart(warp, split, mask, members)
            if waiting is not None:
                return waiting
        return exchange(mask, *values[:-1])

    return call


def _apart(warp: Warp, split: Split, mask: Mask, members: Mask) -> Wait | None:
    """The lanes that are here are not those of the member mask: a wait for them, or a misuse."""
    if np.count_nonzero(members & ~mask):
        if not warp.converged(split):
            return Wait(
                "converge",
                lambda: warp.converged(split),
                lambda: "the lanes of its member mask",
            )
        warp.cta.machine.misuse(
            "member-mask",
            "the member mask names lanes that do not run this instruction",
            "9.7.13",
        )
    if np.count_nonzero(mask & ~members):
        warp.cta.machine.misuse(
            "member-mask", "a lane runs this instruction and is not in its mask", "9.7.13"
        )
    return None


@control("bar.warp.sync", "9.7.13.2", operands=("b32",))
def warp_barrier(_form: Form) -> Handler:
    """Wait for the lanes of the mask."""
    meet = together(lambda _mask: None)

    def call(warp: Warp, split: Split, mask: Mask, members: Lanes) -> object:
        waiting = meet(warp, split, mask, members)
        if waiting is None:
            warp.cta.machine.bus.emit(LanesMet(warp.agent))
        return waiting

    return call


@control("elect", "9.7.13.14", operands=("=b32|pred", "b32"), flags=("sync",))
def elect(_form: Form) -> Handler:
    """P is true in one lane of the mask, d is its number."""

    def choose(mask: Mask) -> tuple[Lanes, Lanes]:
        leader = int(mask.argmax())
        return constant(leader, 32), np.asarray(leader == LANE_IDS)

    return together(choose)


@control("shfl.sync", "9.7.9.6", operands=("=b32|pred", "b32", "b32", "b32", "b32"),
         types=("b32",), flags=("up", "down", "bfly", "idx"))  # fmt: skip
def shuffle(form: Form) -> Handler:
    """D = a of another lane, within a segment; p = whether that lane is in the segment."""
    mode = form.one_of(("up", "down", "bfly", "idx"))

    def exchange(_mask: Mask, a: Lanes, b: Lanes, c: Lanes) -> tuple[Lanes, Lanes]:
        source, inside = _sources(mode, b.tobytes(), c.tobytes())
        return a[source], inside

    return together(exchange)


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


@control("vote.sync", "9.7.13.9", operands=lambda form: (f"={form.type}", "pred", "b32"),
         types=("pred", "b32"), flags=("all", "any", "uni", "ballot"))  # fmt: skip
def vote(form: Form) -> Handler:
    """D = what the lanes' predicates say together."""
    mode = form.one_of(("all", "any", "uni", "ballot"))

    def count(mask: Mask, a: Lanes) -> Lanes:
        yes = a & mask
        if mode == "ballot":
            return constant(to_bits(yes), 32)
        every, some = bool((yes == mask).all()), bool(np.count_nonzero(yes))
        return constant(int({"all": every, "any": some, "uni": every or not some}[mode]), 1)

    return together(count)


def _match_operands(form: Form) -> tuple[str, ...]:
    result = "=b32" if form.instruction.modifiers[0] == "any" else "=b32|pred"
    return (result, "T", "b32")


@control(
    "match.any.sync match.all.sync",
    "9.7.13.11",
    operands=_match_operands,
    types=("b32", "b64"),
)
def match(form: Form) -> Handler:
    """D = the lanes with the same value (`any`), or all lanes if all have it (`all`)."""
    everyone = form.instruction.modifiers[0] == "all"

    def compare(mask: Mask, a: Lanes) -> object:
        if everyone:
            same = bool((a[mask] == a[mask][0]).all())
            return constant(to_bits(mask) if same else 0, 32), constant(int(same), 1)
        equal = (a[:, None] == a[None, :]) & mask[None, :]
        return np.array([to_bits(row) for row in equal], np.uint32)

    return together(compare)


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

    def fold(mask: Mask, a: Lanes) -> Lanes:
        chosen = np.abs(a[mask]) if form.has("abs") else a[mask]
        return np.full(len(a), function.reduce(chosen), a.dtype)

    return together(fold)
