"""Words that lanes update one after the other, computed for as many lanes at once as may be.

Lanes that update different words do not see each other, so each round takes the first lane that is
left of every word. Where all update one word, numpy runs along the chain of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.semantics.choice import signed_zero
from kernelpack.emulator.semantics.rounding import bf16_to_f32, f32_to_bf16

Words = NDArray[Any]
Combine = Callable[..., Words]
"""The old value, and each operand → the new value."""


def _second(_old: Words, x: Words) -> Words:
    return x


def _swapped(old: Words, expected: Words, new: Words) -> Words:
    return np.where(old == expected, new, old)


_FUNCTIONS: dict[str, Combine] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": _second,
    "inc": lambda old, x: np.where(old >= x, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, x: np.where((old == 0) | (old > x), x, old - old.dtype.type(1)),
    "cas": _swapped,
}
_OF_FLOATS: dict[str, Combine] = {
    "min": signed_zero(np.fmin, True),
    "max": signed_zero(np.fmax, False),
}
_KEPT = {"f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64}


@dataclass(frozen=True, slots=True)
class Update:
    """How a word changes; it holds one element, or two."""

    combine: Combine
    element: Any
    chain: Any = None
    """The method that runs along a chain of operands, where there is one."""
    operands: int = 1

    def __call__(
        self, words: Words, places: NDArray[np.intp], operands: list[Words]
    ) -> tuple[Words, bool]:
        """Update `words[places]` in order; what each found, and whether a word changed."""
        if self.chain is not None and len(places) > 1 and np.all(places == places[0]):
            return self._along(words, int(places[0]), operands[0])
        old, changed = np.empty(len(places), words.dtype), False
        for turn in _turns(places):
            found = words[places[turn]]
            with np.errstate(all="ignore"):
                values = [each[turn].view(self.element) for each in operands]
                after = self.combine(found.view(self.element), *values)
            made = np.ascontiguousarray(after, self.element).view(words.dtype)
            old[turn], words[places[turn]] = found, made
            changed = changed or bool((made != found).any())
        return old, changed

    def _along(self, words: Words, place: int, x: Words) -> tuple[Words, bool]:
        steps = np.concatenate([words[place : place + 1], x]).view(self.element)
        with np.errstate(all="ignore"):
            after = self.chain(steps.reshape(len(x) + 1, -1), axis=0, dtype=self.element)
        seen = np.ascontiguousarray(after).reshape(-1).view(words.dtype)
        words[place] = seen[-1]
        return seen[:-1], bool((seen[1:] != seen[:-1]).any())


def update(operation: str, kind: str, bits: int) -> Update:
    """The update of an operation on elements of a type."""
    function = _FUNCTIONS[operation]
    if kind in _KEPT:
        function = _OF_FLOATS.get(operation, function)
    if kind == "bf16" and operation in ("add", "min", "max"):
        return Update(_on_bf16(function), np.uint16)
    element = _KEPT.get(kind) or np.dtype(f"{'i' if kind[0] == 's' else 'u'}{bits // 8}").type
    if isinstance(function, np.ufunc) and kind != "f16":  # halves would be added in f32
        return Update(function, element, function.accumulate)
    return Update(function, element, operands=2 if operation == "cas" else 1)


def _on_bf16(function: Combine) -> Combine:
    """A function of f32 on bf16 bits."""
    return lambda old, x: f32_to_bf16(function(bf16_to_f32(old), bf16_to_f32(x)))


def _turns(places: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Positions of lanes whose places differ, each place's in order."""
    if (places[1:] > places[:-1]).all():
        yield np.arange(len(places))
        return
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    positions = np.arange(len(places))
    begins = np.r_[True, ordered[1:] != ordered[:-1]]
    turn = positions - np.maximum.accumulate(np.where(begins, positions, 0))
    for number in range(int(turn.max(initial=-1)) + 1):
        yield order[turn == number]
