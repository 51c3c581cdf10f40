"""One operand: text → register, number, address, vector …; names are looked up by the caller."""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from kernelpack.emulator.faults import PtxError
from kernelpack.emulator.ptx.lexer import integer, split_operands
from kernelpack.emulator.ptx.syntax import (
    Address,
    Immediate,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)

_FLOAT = re.compile(r"(-?)0([fF])([0-9a-fA-F]{8})|(-?)0([dD])([0-9a-fA-F]{16})")
_DECIMAL = re.compile(r"-?\d+\.\d*(?:[eE][+-]?\d+)?")
_NAME = re.compile(r"[%A-Za-z_$][\w$%]*(?:\.[xyzw])?")
_TERM = re.compile(r"\s*([+-])\s*(-?\w+)")
_SUM = re.compile(rf"([%\w$][%\w$.]*)((?:{_TERM.pattern})+)")
MAX_VECTOR = 256
"""More values than this in one vector are refused; tensor memory is read 128 at a time."""


@dataclass(frozen=True, slots=True)
class OperandReader:
    """Reads operands; `find` gives what a name stands for in the scope, None for one unknown."""

    find: Callable[[str], Register | str | None]
    known: dict[str, Operand] = field(default_factory=dict)
    """Operands read before, by their text; whoever changes what a name stands for clears it."""

    def read(self, text: str) -> Operand:
        """Read one operand; the same text gives the same.

        Raises:
            PtxError: not an operand.
        """
        found = self.known.get(text)
        if found is None:
            found = self.known[text] = self._read(text)
        return found

    def _read(self, text: str) -> Operand:
        if text.startswith(("{", "(")) and text.endswith(("}", ")")):
            return self._vector(text)
        if text.startswith("[") and text.endswith("]"):
            return self._address(text[1:-1].strip())
        if "|" in text:
            first, second = (self._single(part.strip()) for part in text.split("|", 1))
            return Pair(first, second)
        return self._single(text)

    def _single(self, text: str) -> Operand:
        """An operand without parts; most are registers, which no other operand looks like."""
        found = self.find(text)
        if isinstance(found, Register) and _NAME.fullmatch(text) and text != "_":
            return found
        if text == "_":
            return Sink()
        if text.startswith(("!", "-")) and _NAME.fullmatch(text[1:].strip()):
            inner = self._name(text[1:].strip())
            if not isinstance(inner, Register | Special):
                raise _not_an("operand", text)
            return Negated(inner)
        return _literal(text) or self._sum(text)

    def _vector(self, text: str) -> Vector:
        items = split_operands(text[1:-1])
        if len(items) > MAX_VECTOR:
            raise PtxError(f"a vector of {len(items)} values", hint=f"at most {MAX_VECTOR}")
        return Vector(tuple(self._item(item) for item in items))

    def _item(self, text: str) -> Operand:
        """An operand without parts, which may stand by itself elsewhere."""
        found = self.known.get(text)
        return found if isinstance(found, Register) else self._single(text)

    def _sum(self, text: str) -> Symbol | Operand:
        """A name, or the address of one with an offset."""
        base, offset = _offset(text)
        named = self._name(base)
        if base == text:
            return named
        if not isinstance(named, Symbol):
            raise _not_an("operand", text)
        return Symbol(named.name, offset)

    def _name(self, text: str) -> Register | Special | Symbol | Immediate:
        if text == "WARP_SZ":
            return Immediate("int", 32)
        if not _NAME.fullmatch(text):
            raise _not_an("operand", text)
        found = self.find(text)
        if isinstance(found, Register):
            return found
        if text.startswith("%"):
            return Special(text[1:])
        return Symbol(found or text)

    def _address(self, text: str) -> Address:
        parts = split_operands(text)
        if not parts or len(parts) > 2:
            raise _not_an("address", f"[{text}]")
        coordinates = None
        if len(parts) == 2:
            vector = self.read(parts[1]) if parts[1].startswith("{") else self._single(parts[1])
            coordinates = vector if isinstance(vector, Vector) else Vector((vector,))
        base_text, offset = _offset(parts[0])
        base = self._single(base_text)
        if not isinstance(base, Register | Symbol | Immediate):
            raise _not_an("address", f"[{text}]")
        return Address(base, offset, coordinates)


def _not_an(what: str, text: str) -> PtxError:
    return PtxError(f"not an {what}: `{text[:60]}`")


def _offset(text: str) -> tuple[str, int]:
    """`base+4-1` → `base` and 3; a text that is no sum is its own base.

    Raises:
        PtxError: what is added is not a number, or the sum does not fit 64 bits.
    """
    match = _SUM.fullmatch(text)
    if match is None:
        return text, 0
    offset = 0
    for sign, digits in _TERM.findall(match.group(2)):
        number = integer(digits)
        if number is None:
            raise PtxError(f"not a number: `{digits[:60]}`")
        offset += -number if sign == "-" else number
    if abs(offset) >> 64:
        raise PtxError(f"an offset that does not fit 64 bits: `{text[:60]}`")
    return match.group(1), offset


def _literal(text: str) -> Immediate | None:
    """A number, else None."""
    if match := _FLOAT.fullmatch(text):
        single = match.group(3) is not None
        digits = match.group(3) or match.group(6)
        bits = int(digits, 16)
        if match.group(1) or match.group(4):
            bits ^= 1 << (31 if single else 63)
        return Immediate("f32" if single else "f64", bits)
    if (number := integer(text)) is not None:
        return Immediate("int", number)
    if _DECIMAL.fullmatch(text):
        return Immediate("decimal", _double_bits(float(text)))
    return None


def _double_bits(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little")
