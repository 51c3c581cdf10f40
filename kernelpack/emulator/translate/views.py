"""How generated code sees a register as a type: Python text that numpy evaluates.

Registers hold unsigned integers. A view costs as much as the arithmetic itself, so none is written
where the type is unsigned anyway.
"""

from kernelpack.emulator.ptx.syntax import BITS

_NUMBERS = {"s": "i", "f": "f"}


def number_of(kind: str) -> str:
    """The letter numpy has for the numbers of a PTX type: `i`, `f`, or `u` for all others."""
    return _NUMBERS.get(kind[0], "u") if kind[1:].isdigit() else "u"


def seen_as(name: str, kind: str) -> str:
    """Unsigned lanes seen as lanes of type `kind`."""
    letter = number_of(kind)
    return name if letter == "u" else f"{name}.view({letter}{BITS[kind] // 8})"


def read_as(name: str, bits: int, kind: str) -> str:
    """A register of some width read as type `kind`; a wider register gives its low bits."""
    width = BITS[kind]
    if bits != width and 1 not in (bits, width):
        name = f"{name}.astype(u{width // 8})"
    return seen_as(name, kind)


def kept_as(value: str, kind: str, bits: int) -> str:
    """A value of type `kind` as a register of `bits`; signed types fill with their sign."""
    width = BITS[kind]
    letter = number_of(kind)
    if bits == 1 or width == 1 or bits == 128:
        return value
    if width == bits:
        return value if letter == "u" else f"{value}.view(u{bits // 8})"
    if letter == "i":
        return f"{value}.astype(i{bits // 8}).view(u{bits // 8})"
    if letter == "f":
        return f"{value}.view(u{width // 8}).astype(u{bits // 8})"
    return f"{value}.astype(u{bits // 8})"
