"""Atomic operations on memory (PTX ISA 9.7.13.5, 9.7.13.6): lane after lane, in order of lanes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelpack.emulator.machine.lanes import WIDTH, Lanes, Mask
from kernelpack.emulator.machine.memory import Bytes
from kernelpack.emulator.machine.polls import asked
from kernelpack.emulator.machine.warp import Warp
from kernelpack.emulator.semantics import access, order
from kernelpack.emulator.semantics.memory import SCOPES, SPACE_FLAGS
from kernelpack.emulator.semantics.order import Sync
from kernelpack.emulator.semantics.rounding import bf16_to_f32, f32_to_bf16
from kernelpack.emulator.semantics.table import FLOATS, Form, Handler, machine

Combine = Callable[[Any, Any], Any]
_OPERATIONS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
_ORDER = ("relaxed", "acquire", "release", "acq_rel", "volatile")
_FLAGS = (*_OPERATIONS, *_ORDER, *SCOPES, *SPACE_FLAGS, "noftz", "L2::cache_hint", "v2", "v4", "v8")
_TYPES = (*("b16", "b32", "b64", "b128", "u32", "s32", "u64", "s64", *FLOATS, "f16x2", "bf16x2"),)


def combiner(operation: str, kind: str) -> Combine:
    """old, operand → new, on scalars of the numpy type that `kind` is kept in."""
    plain: dict[str, Combine] = {
        "add": lambda old, x: old + x,
        "min": min,
        "max": max,
        "and": lambda old, x: old & x,
        "or": lambda old, x: old | x,
        "xor": lambda old, x: old ^ x,
        "exch": lambda _old, x: x,
        "inc": lambda old, x: type(old)(0) if old >= x else old + type(old)(1),
        "dec": lambda old, x: x if old == 0 or old > x else old - type(old)(1),
    }
    function = plain[operation]
    if kind in ("f16", "f32", "f64") and operation in ("min", "max"):
        return np.fmin if operation == "min" else np.fmax
    if kind == "bf16":
        return _on_bf16(
            np.fmin if operation == "min" else np.fmax if operation == "max" else function
        )
    return function


def _on_bf16(function: Combine) -> Combine:
    """A function of f32 on bf16 bits."""

    def call(old: Any, x: Any) -> Any:  # noqa: ANN401
        wide = [bf16_to_f32(np.array([v], np.uint16)) for v in (old, x)]
        return f32_to_bf16(np.asarray(function(*wide)))[0]

    return call


def _element(form: Form) -> str:
    return form.type.removesuffix("x2")


_KEPT = {"f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64}


def kept(kind: str, bits: int) -> Any:  # noqa: ANN401
    """The numpy type of one element."""
    if kind in _KEPT:
        return _KEPT[kind]
    return np.dtype(f"{'i' if kind[0] == 's' else 'u'}{bits // 8}").type


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
        kept(kind, bits),
        np.dtype(f"u{form.bits // 8}"),
        None if operation == "cas" else combiner(operation, kind),
    )


@dataclass(frozen=True, slots=True)
class _Update:
    """A read-modify-write. `combine` is None for compare-and-swap."""

    space: str
    sync: Sync
    element: Any
    whole: Any
    combine: Combine | None

    def __call__(
        self, warp: Warp, mask: Mask | None, at: Lanes, values: list[Lanes], *more: list[Lanes]
    ) -> list[Lanes]:
        """Update a vector of values for each lane, lane after lane; the old values."""
        size, count = self.whole.itemsize, len(values)
        swap = more[0] if self.combine is None else None
        old = [np.zeros(WIDTH, self.whole) for _ in range(count)]
        changed = False
        for memory, offsets, lanes in access.place(warp, mask, at, self.space):
            numbers = access.lane_ids(lanes)
            good = memory.good(offsets, size * count, numbers, write=True)
            memory.load(offsets[good], size, count, _mask(numbers[good]))
            access.told(warp, memory, offsets, size * count, write=True, sync=self.sync, by=numbers)
            for position, lane in enumerate(access.each_lane(lanes)):
                for k in range(count if good[position] else 0):
                    operands = [values[k][lane]] + ([swap[k][lane]] if swap else [])
                    offset = int(offsets[position]) + k * size
                    raw = memory.bytes[offset : offset + size]
                    before = raw.copy()
                    old[k][lane] = self._one(raw, operands)
                    changed = changed or not np.array_equal(before, raw)
        if changed:
            warp.cta.machine.changes += 1
        else:
            asked(warp, mask, at.tobytes(), b"".join(value.tobytes() for value in old))
        return old

    def _one(self, raw: Bytes, operands: list[Any]) -> Any:  # noqa: ANN401
        """Update one value in place; the old one."""
        before = raw.copy()
        if self.combine is None:
            expected, new = operands
            if before.view(self.whole)[0] == expected:
                raw[:] = np.array([new], self.whole).view(np.uint8)
        else:
            given = np.array(operands, self.whole).view(self.element)
            pairs = zip(before.view(self.element), given, strict=True)
            after = [self.combine(old, x) for old, x in pairs]
            raw[:] = np.array(after, self.element).view(np.uint8)
        return before.view(self.whole)[0]


def _mask(lanes: Lanes) -> Mask:
    """The mask of some lanes."""
    mask: Mask = np.zeros(WIDTH, bool)
    mask[lanes] = True
    return mask
