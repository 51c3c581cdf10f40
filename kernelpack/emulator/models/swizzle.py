"""The bank swizzles of shared memory: which byte goes where, as a function of its address.

A swizzle exchanges address bits inside a pattern that repeats over shared memory; it depends on
the absolute address alone, so TMA and the tensor cores agree without knowing of each other. Each
function is its own inverse.
Source: PTX ISA 9.1, 5.5.7 (swizzling modes).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpack.spec.tensormap import Swizzle

Addresses = npt.NDArray[np.signedinteger[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """`address ^= (address >> shift) & mask`, repeating every `period_bytes`.

    `span_bytes` is the width of one row of the pattern; `atom_bytes` stay together; `flip_8`
    exchanges the 8-byte halves of 16 bytes in every other 128-byte line.
    """

    shift: int
    mask: int
    span_bytes: int
    atom_bytes: int
    period_bytes: int
    flip_8: bool = False


PATTERNS = {
    Swizzle.NONE: Pattern(shift=0, mask=0, span_bytes=16, atom_bytes=16, period_bytes=16),
    Swizzle.B32: Pattern(shift=3, mask=0x10, span_bytes=32, atom_bytes=16, period_bytes=256),
    Swizzle.B64: Pattern(shift=3, mask=0x30, span_bytes=64, atom_bytes=16, period_bytes=512),
    Swizzle.B128: Pattern(shift=3, mask=0x70, span_bytes=128, atom_bytes=16, period_bytes=1024),
    Swizzle.B128_ATOM32: Pattern(
        shift=2, mask=0x60, span_bytes=128, atom_bytes=32, period_bytes=512
    ),
    Swizzle.B128_ATOM32_FLIP8: Pattern(
        shift=2, mask=0x60, span_bytes=128, atom_bytes=32, period_bytes=512, flip_8=True
    ),
    Swizzle.B128_ATOM64: Pattern(
        shift=1, mask=0x40, span_bytes=128, atom_bytes=64, period_bytes=256
    ),
}


def apply(swizzle: Swizzle, addresses: Addresses, pattern_start: int = 0) -> Addresses:
    """Shared byte addresses as the swizzle permutes them.

    `pattern_start` moves the pattern: a descriptor's base offset, in bytes.
    """
    pattern = PATTERNS[swizzle]
    if not pattern.mask:
        return addresses
    relative = addresses - pattern_start
    moved: Addresses = addresses ^ ((relative >> pattern.shift) & pattern.mask)
    if pattern.flip_8:
        moved = moved ^ ((relative >> 4) & 0x8)
    return moved


def base_offset(swizzle: Swizzle, pattern_start: int) -> int:
    """The descriptor's base offset: the 128-byte line in which the pattern starts (5.5.7)."""
    return pattern_start // 128 % (PATTERNS[swizzle].period_bytes // 128 or 1)
