"""Exchange between the lanes of a warp (PTX ISA 9.7.9.6, 9.7.13.8 to 9.7.13.12, 9.7.13.15)."""

from collections.abc import Callable
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
        members = from_bits(int(values[-1][int(np.argmax(mask))])) & warp.alive
        if (members & ~mask).any():
            if warp.converged(split):
                warp.cta.machine.misuse(
                    "member-mask",
                    "the member mask names lanes that do not run this instruction",
                    "9.7.13",
                )
            else:
                return Wait(
                    "converge",
                    lambda: warp.converged(split),
                    lambda: "the lanes of its member mask",
                )
        if (mask & ~members).any():
            warp.cta.machine.misuse(
                "member-mask", "a lane runs this instruction and is not in its mask", "9.7.13"
            )
        return exchange(mask, *values[:-1])

    return call


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
        leader = int(np.argmax(mask))
        return constant(leader, 32), np.asarray(leader == LANE_IDS)

    return together(choose)


@control("shfl.sync", "9.7.9.6", operands=("=b32|pred", "b32", "b32", "b32", "b32"),
         types=("b32",), flags=("up", "down", "bfly", "idx"))  # fmt: skip
def shuffle(form: Form) -> Handler:
    """D = a of another lane, within a segment; p = whether that lane is in the segment."""
    mode = form.one_of(("up", "down", "bfly", "idx"))

    def exchange(_mask: Mask, a: Lanes, b: Lanes, c: Lanes) -> tuple[Lanes, Lanes]:
        step, control_word = b.astype(np.intp) & 31, c.astype(np.intp)
        segment, clamp = control_word >> 8 & 31, control_word & 31
        highest = (LANE_IDS & segment) | (clamp & ~segment)
        lowest = LANE_IDS & segment
        if mode == "up":
            source = LANE_IDS - step
            inside = source >= highest
        elif mode == "idx":
            source = lowest | (step & ~segment)
            inside = source <= highest
        else:
            source = LANE_IDS + step if mode == "down" else LANE_IDS ^ step
            inside = source <= highest
        source = np.where(inside, source, LANE_IDS)
        return a[source & 31], inside

    return together(exchange)


@control("vote.sync", "9.7.13.9", operands=lambda form: (f"={form.type}", "pred", "b32"),
         types=("pred", "b32"), flags=("all", "any", "uni", "ballot"))  # fmt: skip
def vote(form: Form) -> Handler:
    """D = what the lanes' predicates say together."""
    mode = form.one_of(("all", "any", "uni", "ballot"))

    def count(mask: Mask, a: Lanes) -> Lanes:
        yes = a & mask
        if mode == "ballot":
            return constant(to_bits(yes), 32)
        every, some = bool((yes == mask).all()), bool(yes.any())
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
