"""Constants as operands: the bits a literal has when it is read as some type (PTX ISA 4.5)."""

import struct

import numpy as np

from kernelpack.emulator.ptx.syntax import BITS, Immediate


def literal_bits(literal: Immediate, kind: str) -> int:
    """The bits of `literal` as a value of type `kind`."""
    width = BITS[kind]
    if kind == "pred":
        return int(literal.value != 0)
    if literal.kind == "int":
        return literal.value & ((1 << width) - 1)
    if literal.kind == "f32" and kind != "f64":
        return literal.value & ((1 << width) - 1)
    value = _as_double(literal)
    if kind == "f64" or width == 64:
        return int.from_bytes(struct.pack("<d", value), "little")
    return int(np.float32(value).view(np.uint32)) & ((1 << width) - 1)


def _as_double(literal: Immediate) -> float:
    if literal.kind == "f32":
        return float(np.uint32(literal.value).view(np.float32))
    return float(np.uint64(literal.value).view(np.float64))
