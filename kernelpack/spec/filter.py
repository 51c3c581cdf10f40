"""Choose variants by an expression over their ids: `lora and not (regime=decode or sm_90a)`.

A word matches an id that contains it: `bf16` any axis with that value, `dtype=bf16` that one axis.
Words are joined by `and`, `or`, `not` and parentheses; anything between blanks and parentheses is
one word.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from kernelpack.errors import KernelpackError
from kernelpack.spec.counted import counted
from kernelpack.spec.nearest import nearest

Filter = Callable[[str], bool]
"""Whether a variant of this id is kept."""

MAX_DEPTH = 64
"""Parentheses and `not`s within each other."""

_OPERATORS = {"and", "or", "not", "(", ")"}
_WORD = re.compile(r"[()]|[^\s()]+")


class Named(Protocol):
    """A candidate: a variant, or a record of one."""

    @property
    def id(self) -> str:
        """The name that the expression is about."""


T = TypeVar("T", bound=Named)


def parse_filter(text: str) -> Filter:
    """The choice that an expression describes; an empty one keeps all.

    Raises:
        KernelpackError: the expression does not parse.

    """
    return _Parser(text).whole() if text.strip() else lambda _: True


def filtered(items: Sequence[T], text: str) -> list[T]:
    """The items whose id an expression keeps.

    Raises:
        KernelpackError: the expression does not parse, or keeps none of the items.

    """
    keeps = parse_filter(text)
    found = [item for item in items if keeps(item.id)]
    if items and not found:
        raise nothing_matches(text, [item.id for item in items])
    return found


def nothing_matches(text: str, ids: Sequence[str]) -> KernelpackError:
    """The error of an expression that keeps none: which word no id has, and what was meant."""
    words = [word for word in _WORD.findall(text) if word not in _OPERATORS]
    unknown = [word for word in words if not any(_contains(word)(name) for name in ids)]
    near = nearest(unknown[0].lower(), words_of(ids)) if unknown else ""
    where = f"no id holds `{unknown[0]}`: " if unknown else ""
    return KernelpackError(
        f"{where}none of {counted(len(ids), 'variant')} is kept",
        where=f"-k {text!r}",
        hint=f"{near} ids are like {ids[0]}".strip(),
    )


def words_of(ids: Iterable[str]) -> list[str]:
    """The words that ids are made of: kernels, `axis=value`, and values alone."""
    pairs = {part for name in ids for part in re.split(r"[\[\],]", name) if part}
    return sorted(pairs | {pair.partition("=")[2] for pair in pairs if "=" in pair})


class _Parser:
    """Recursive descent over the words; `or` binds least, `not` most."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = _WORD.findall(text)[::-1]
        self._depth = 0

    def whole(self) -> Filter:
        keep = self._either()
        return self._fail() if self._words else keep

    def _either(self) -> Filter:
        keeps = [self._both()]
        while self._take("or"):
            keeps.append(self._both())
        return lambda variant_id: any(keep(variant_id) for keep in keeps)

    def _both(self) -> Filter:
        keeps = [self._one()]
        while self._take("and"):
            keeps.append(self._one())
        return lambda variant_id: all(keep(variant_id) for keep in keeps)

    def _one(self) -> Filter:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise KernelpackError(
                f"the choice is nested deeper than {MAX_DEPTH}", where=f"-k {self._text[:40]!r}"
            )
        keep = self._not() if self._take("not") else self._within() if self._take("(") else None
        self._depth -= 1
        return keep or self._word()

    def _not(self) -> Filter:
        keep = self._one()
        return lambda variant_id: not keep(variant_id)

    def _within(self) -> Filter:
        keep = self._either()
        return keep if self._take(")") else self._fail()

    def _word(self) -> Filter:
        if not self._words or self._words[-1] in _OPERATORS:
            return self._fail()
        return _contains(self._words.pop())

    def _take(self, word: str) -> bool:
        if self._words[-1:] != [word]:
            return False
        self._words.pop()
        return True

    def _fail(self) -> Filter:
        at = self._words[-1] if self._words else "the end"
        raise KernelpackError(
            f"the choice does not parse at `{at}`",
            where=f"-k {self._text!r}",
            hint="words of an id joined by and, or, not and parentheses: `sm_90a and not fp16`",
        )


def _contains(word: str) -> Filter:
    return lambda variant_id: word.lower() in variant_id.lower()
