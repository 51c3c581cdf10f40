"""One operand: text → register, number, address, vector …; names are looked up by the caller."""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass

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
_SUM = re.compile(r"(.*?[\w$\]])\s*([+-])\s*(-?(?:0[xX][0-9a-fA-F]+|\d+))$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class OperandReader:
    """Reads operands; `find` gives what a name stands for in the scope, None for one unknown."""

    find: Callable[[str], Register | str | None]

    def read(self, text: str) -> Operand:
        """Read one operand.

        Raises:
            PtxError: not an operand.
        """
        if text == "_":
            return Sink()
        if text.startswith(("{", "(")) and text.endswith(("}", ")")):
            return Vector(tuple(self.read(part) for part in split_operands(text[1:-1])))
        if text.startswith("[") and text.endswith("]"):
            return self._address(text[1:-1].strip())
        if "|" in text:
            first, second = (self.read(part.strip()) for part in text.split("|", 1))
            return Pair(first, second)
        if text.startswith(("!", "-")) and _NAME.fullmatch(text[1:].strip()):
            inner = self.read(text[1:].strip())
            if not isinstance(inner, Register | Special):
                raise PtxError(f"not an operand: `{text[:60]}`")
            return Negated(inner)
        return _literal(text) or self._name(text)

    def _name(self, text: str) -> Operand:
        if text == "WARP_SZ":
            return Immediate("int", 32)
        if match := _SUM.fullmatch(text):
            base = self._name(match.group(1).strip())
            offset = _offset(match)
            if isinstance(base, Symbol):
                return Symbol(base.name, base.offset + offset)
        if not _NAME.fullmatch(text):
            raise PtxError(f"not an operand: `{text[:60]}`")
        found = self.find(text)
        if isinstance(found, Register):
            return found
        if text.startswith("%"):
            return Special(text[1:])
        return Symbol(found or text)

    def _address(self, text: str) -> Address:
        parts = split_operands(text)
        if not parts or len(parts) > 2:
            raise PtxError(f"not an address: `[{text[:60]}]`")
        coordinates = None
        if len(parts) == 2:
            vector = self.read(parts[1])
            coordinates = vector if isinstance(vector, Vector) else Vector((vector,))
        base_text, offset = parts[0], 0
        if match := _SUM.fullmatch(base_text):
            base_text = match.group(1).strip()
            offset = _offset(match)
        base = self.read(base_text)
        if not isinstance(base, Register | Symbol | Immediate):
            raise PtxError(f"not an address: `[{text[:60]}]`")
        return Address(base, offset, coordinates)


def _offset(match: re.Match[str]) -> int:
    """The number behind the sign of `_SUM`.

    Raises:
        PtxError: it is not a number.
    """
    number = integer(match.group(3))
    if number is None:
        raise PtxError(f"not a number: `{match.group(3)}`")
    return -number if match.group(2) == "-" else number


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
