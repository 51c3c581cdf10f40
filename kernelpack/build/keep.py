"""Choose variants by an expression over their ids: `lora and not (regime=decode or sm_90a)`.

A word matches an id that contains it. Words are joined by `and`, `or`, `not` and parentheses;
anything between blanks and parentheses is one word.
"""

import re
from collections.abc import Callable

from kernelpack.errors import KernelpackError

Keep = Callable[[str], bool]
"""Whether a variant of this id is kept."""

_OPERATORS = {"and", "or", "not", "(", ")"}


def parse_keep(text: str) -> Keep:
    """The choice that an expression describes; an empty one keeps all.

    Raises:
        KernelpackError: the expression does not parse.

    """
    return _Parser(text).whole() if text.strip() else lambda _: True


class _Parser:
    """Recursive descent over the words; `or` binds least, `not` most."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = re.findall(r"[()]|[^\s()]+", text)

    def whole(self) -> Keep:
        keep = self._either()
        return self._fail() if self._words else keep

    def _either(self) -> Keep:
        keep = self._both()
        while self._take("or"):
            keep = _or(keep, self._both())
        return keep

    def _both(self) -> Keep:
        keep = self._one()
        while self._take("and"):
            keep = _and(keep, self._one())
        return keep

    def _one(self) -> Keep:
        if self._take("not"):
            return _not(self._one())
        if self._take("("):
            keep = self._either()
            return keep if self._take(")") else self._fail()
        if not self._words or self._words[0] in _OPERATORS:
            return self._fail()
        return _contains(self._words.pop(0))

    def _take(self, word: str) -> bool:
        if self._words[:1] != [word]:
            return False
        self._words.pop(0)
        return True

    def _fail(self) -> Keep:
        at = self._words[0] if self._words else "the end"
        raise KernelpackError(
            f"the choice does not parse at `{at}`",
            where=f"-k {self._text!r}",
            hint="words of an id joined by and, or, not and parentheses: `sm_90a and not fp16`",
        )


def _or(a: Keep, b: Keep) -> Keep:
    return lambda variant_id: a(variant_id) or b(variant_id)


def _and(a: Keep, b: Keep) -> Keep:
    return lambda variant_id: a(variant_id) and b(variant_id)


def _not(a: Keep) -> Keep:
    return lambda variant_id: not a(variant_id)


def _contains(word: str) -> Keep:
    return lambda variant_id: word.lower() in variant_id.lower()
