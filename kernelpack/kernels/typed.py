"""Sizes as a person types them, `m=4096 k=7168`: names checked, numbers read, groups made."""

from collections.abc import Mapping

from kernelpack.errors import ProblemError

MAX_DIGITS = 18
"""Digits of a size at most: it fits 64 bits."""


class Typed:
    """Typed sizes, with defaults for the rest.

    Args:
        sizes: name → text, as typed.
        defaults: every name there is, with the text that counts where none is typed.
        kernel: the kernel's stem, for errors.

    Raises:
        ProblemError: an unknown name.

    """

    def __init__(self, sizes: Mapping[str, str], defaults: Mapping[str, str], kernel: str) -> None:
        unknown = sorted(set(sizes) - set(defaults))
        if unknown:
            hint = f"sizes: {', '.join(defaults)}"
            raise ProblemError(f"unknown size `{unknown[0]}`", where=kernel, hint=hint)
        self.texts, self.kernel = {**defaults, **sizes}, kernel

    @property
    def name(self) -> str:
        """All of it in a line, to call a case by."""
        return ",".join(f"{name}={text}" for name, text in self.texts.items())

    def number(self, name: str, *, least: int = 1) -> int:
        """A size as a number, from 1 on: without rows or groups nothing would be launched.

        Raises:
            ProblemError: it is not a number, or less than `least`.

        """
        text = self.texts[name]
        is_number = text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
        if not is_number or int(text) < least:
            rule = f"`{name}` must be an integer of at least {least}, not `{text[:40]}`"
            hint = f"at most {MAX_DIGITS} digits" if len(text) > MAX_DIGITS else ""
            raise ProblemError(rule, where=self.kernel, hint=hint)
        return int(text)


def evenly(rows: int, groups: int) -> tuple[int, ...]:
    """The rows of each group, as even as can be."""
    return tuple((rows * (i + 1)) // groups - (rows * i) // groups for i in range(groups))
