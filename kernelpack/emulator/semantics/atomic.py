"""Atomic operations on memory (PTX ISA 9.7.13.5, 9.7.13.6): lane after lane, in order of lanes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelpack.emulator.machine.lanes import WIDTH, Lanes, Mask
from kernelpack.emulator.machine.polls import asked
from kernelpack.emulator.machine.warp import Warp
from kernelpack.emulator.semantics import access, order, updates
from kernelpack.emulator.semantics.memory import SCOPES, SPACE_FLAGS
from kernelpack.emulator.semantics.order import Sync
from kernelpack.emulator.semantics.table import FLOATS, Form, Handler, machine

_OPERATIONS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
_ORDER = ("relaxed", "acquire", "release", "acq_rel", "volatile")
_FLAGS = (*_OPERATIONS, *_ORDER, *SCOPES, *SPACE_FLAGS, "noftz", "L2::cache_hint", "v2", "v4", "v8")
_TYPES = (*("b16", "b32", "b64", "b128", "u32", "s32", "u64", "s64", *FLOATS, "f16x2", "bf16x2"),)


def _element(form: Form) -> str:
    return form.type.removesuffix("x2")


def _value(form: Form) -> str:
    return f"b{form.bits}"


def _atom_operands(form: Form) -> tuple[str, ...]:
    value = "{" + _value(form) + "}"
    more = (value,) if form.has("cas") else ()
    return ("=" + value, "@", value, *more, "b64?")


def _red_operands(form: Form) -> tuple[str, ...]:
    return ("@", "{" + _value(form) + "}", "b64?")


@machine("atom", "9.7.13.5", operands=_atom_operands, types=_TYPES, flags=_FLAGS)
def atomic(form: Form) -> Handler:
    """D = the old value; the value at the address = what the operation makes of it."""
    update = _updater(form)
    count = form.length(0)

    def call(warp: Warp, mask: Mask | None, at: Lanes, *values: Any) -> object:  # noqa: ANN401
        old = update(warp, mask, at, *values)
        return old[0] if count == 1 else old

    return call


@machine("red", "9.7.13.6", operands=_red_operands, types=_TYPES, flags=_FLAGS)
def reduce(form: Form) -> Handler:
    """The value at the address = what the operation makes of it."""
    update = _updater(form)

    def call(warp: Warp, mask: Mask | None, at: Lanes, *values: Any) -> None:  # noqa: ANN401
        update(warp, mask, at, *values)

    return call


def _updater(form: Form) -> "_Update":
    """The read-modify-write of a form.

    Raises:
        UnsupportedError: it is not modelled.
    """
    operation = next((m for m in form.instruction.modifiers if m in _OPERATIONS), "")
    if not operation or form.type == "b128":
        raise form.unsupported("an atomic without an operation, or of 128 bits")
    kind, bits = _element(form), form.bits // (2 if form.type.endswith("x2") else 1)
    return _Update(
        form.space,
        order.of_atomic(form),
        np.dtype(f"u{form.bits // 8}"),
        updates.update(operation, kind, bits),
    )


@dataclass(frozen=True, slots=True)
class _Update:
    """A read-modify-write of the lanes of a warp."""

    space: str
    sync: Sync
    whole: Any
    update: updates.Update

    def __call__(
        self,
        warp: Warp,
        mask: Mask | None,
        at: Lanes,
        *given: Any,  # noqa: ANN401
    ) -> list[Lanes]:
        """Update a vector of values for each lane, lane after lane; the old values."""
        operands = given[: self.update.operands]  # no hint of a cache
        size, count = self.whole.itemsize, len(operands[0])
        old = [np.zeros(WIDTH, self.whole) for _ in range(count)]
        changed = False
        for memory, offsets, lanes in access.place(warp, mask, at, self.space):
            numbers = access.lane_ids(lanes)
            good = memory.good(offsets, size * count, numbers, write=True)
            memory.load(offsets[good], size, count, _mask(numbers[good]))
            access.told(warp, memory, offsets, size * count, write=True, sync=self.sync, by=numbers)
            places, who = (offsets[good] // size).astype(np.intp), numbers[good]
            for k in range(count):
                values = [operand[k][who].view(self.whole) for operand in operands]
                old[k][who], is_new = self.update(memory.views[size], places + k, values)
                changed = changed or is_new
        if changed:
            warp.cta.machine.changes += 1
        else:
            asked(warp, mask, at.tobytes(), b"".join(value.tobytes() for value in old))
        return old


def _mask(lanes: Lanes) -> Mask:
    """The mask of some lanes."""
    mask: Mask = np.zeros(WIDTH, bool)
    mask[lanes] = True
    return mask
