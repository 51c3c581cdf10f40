"""Shared-memory matrix descriptors: which bytes of shared memory an MMA reads.

A 64-bit descriptor gives a start address, two strides and a swizzle. The canonical layouts turn a
(row, k) position into an offset; the swizzle then permutes the *absolute* address, which is why a
kernel steps along K inside a swizzle atom by adding bytes to the start address. A base offset moves
the pattern by so many 128-byte lines (measured with wgmma on an H200).
Sources: PTX ISA 9.1, 9.7.16.4.1 (tcgen05), 9.7.15.5.1.2 (wgmma), 9.7.16.3.3 (canonical layouts).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpack.emulator import rules
from kernelpack.emulator.models import swizzle as swizzles
from kernelpack.emulator.models.fault import Misuse, misuse, require
from kernelpack.errors import UnsupportedError
from kernelpack.spec.tensormap import Swizzle

Addresses = npt.NDArray[np.intp]
_Strides = tuple[int, int, Swizzle, int]
"""Leading and stride offset, swizzle, and where its pattern starts, in bytes."""

_TCGEN05_SWIZZLES = {
    0: Swizzle.NONE,
    1: Swizzle.B128_ATOM32,
    2: Swizzle.B128,
    4: Swizzle.B64,
    6: Swizzle.B32,
}
_WGMMA_SWIZZLES = {0: Swizzle.NONE, 1: Swizzle.B128, 2: Swizzle.B64, 3: Swizzle.B32}
_PERIOD = 1024
"""All patterns repeat within 1024 bytes, so offsets are cached for starts modulo this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDescriptor:
    """A decoded descriptor; addresses and strides in bytes.

    `version` and `reserved` are what is in the constant fields; `absolute` says that
    `leading_bytes` is the address of a second buffer (sm_103a only).
    """

    unit: str
    start: int
    leading_bytes: int
    stride_bytes: int
    swizzle: Swizzle
    base_offset: int = 0
    version: int = 1
    absolute: bool = False
    reserved: int = 0


def tcgen05_descriptor(raw: int) -> SharedDescriptor:
    """Decode the 64 bits that tcgen05.mma and tcgen05.cp take."""
    mode = raw >> 61 & 7
    require(
        mode in _TCGEN05_SWIZZLES,
        rules.DESCRIPTOR_SWIZZLE,
        f"swizzle mode {mode} of a shared-memory descriptor is invalid",
    )
    return SharedDescriptor(
        unit="tcgen05",
        start=(raw & 0x3FFF) << 4,
        leading_bytes=(raw >> 16 & 0x3FFF) << 4,
        stride_bytes=(raw >> 32 & 0x3FFF) << 4,
        version=raw >> 46 & 7,
        base_offset=raw >> 49 & 7,
        absolute=bool(raw >> 52 & 1),
        reserved=raw >> 53 & 0xFF,
        swizzle=_TCGEN05_SWIZZLES[mode],
    )


def wgmma_descriptor(raw: int) -> SharedDescriptor:
    """Decode the 64 bits that wgmma takes."""
    return SharedDescriptor(
        unit="wgmma",
        start=(raw & 0x3FFF) << 4,
        leading_bytes=(raw >> 16 & 0x3FFF) << 4,
        stride_bytes=(raw >> 32 & 0x3FFF) << 4,
        base_offset=raw >> 49 & 7,
        reserved=raw >> 46 & 7 | (raw >> 52 & 0x3FF) << 3,
        swizzle=_WGMMA_SWIZZLES[raw >> 62 & 3],
    )


def lint(descriptor: SharedDescriptor) -> tuple[Misuse, ...]:
    """Mistakes of a descriptor that do not depend on the matrix."""
    found = []
    if descriptor.version != 1:
        text = f"the constant field of a tcgen05 descriptor is {descriptor.version}, must be 1"
        found.append(misuse(rules.DESCRIPTOR_VERSION, text))
    if descriptor.reserved:
        text = f"reserved bits of a descriptor are {descriptor.reserved:#x}, must be 0"
        found.append(misuse(rules.DESCRIPTOR_RESERVED[descriptor.unit], text))
    line = swizzles.base_offset(descriptor.swizzle, descriptor.start)
    if line and not descriptor.base_offset:
        text = (
            f"start {descriptor.start:#x} is in line {line} of its swizzle pattern, base offset 0"
        )
        found.append(misuse(rules.DESCRIPTOR_BASE_OFFSET[descriptor.unit], text))
    return tuple(found)


def operand_addresses(
    descriptor: SharedDescriptor,
    *,
    mn_major: bool,
    rows: int,
    k: int,
    bits: int,
    padded: bool = False,
) -> Addresses:
    """Shared byte addresses of an operand, as a dense K-major matrix of bytes.

    Args:
        descriptor: where and how.
        mn_major: the transpose bit; rows are contiguous instead of K.
        rows: M of A or N of B, of this CTA.
        k: elements along K of one instruction.
        bits: bits of an element.
        padded: 16 elements are in 16 bytes (4- and 6-bit types of f8f6f4 kinds); the padding
            is left out.

    Returns:
        (rows, k * bits / 8) addresses; read-only.
    """
    if descriptor.absolute:
        raise UnsupportedError("a descriptor with an absolute leading address is not modelled")
    base = descriptor.start // _PERIOD * _PERIOD
    phase = descriptor.start - base
    strides = (
        descriptor.leading_bytes,
        descriptor.stride_bytes,
        descriptor.swizzle,
        descriptor.base_offset * 128,
    )
    if mn_major:
        if bits < 8:
            raise UnsupportedError(f"MN-major operands of {bits}-bit elements are not modelled")
        return base + _mn_major(phase, strides, rows, k, bits // 8)
    if padded and bits < 8:
        chunks = _k_major(phase, strides, rows, k).reshape(rows, -1, 16)
        return base + chunks[..., : 2 * bits].reshape(rows, -1)
    return base + _k_major(phase, strides, rows, k * bits // 8)


@lru_cache(maxsize=1024)
def _k_major(phase: int, strides: _Strides, rows: int, row_bytes: int) -> Addresses:
    """K contiguous: 8-row groups `stride` apart; without swizzle 16-byte columns `leading` apart.

    With a swizzle a row is as wide as its pattern and the leading offset is not used.
    """
    leading, stride, swizzle, pattern_start = strides
    row, byte = np.arange(rows)[:, None], np.arange(row_bytes)
    if swizzle is Swizzle.NONE:
        offsets = row // 8 * stride + row % 8 * 16 + byte // 16 * leading + byte % 16
    else:
        offsets = row // 8 * stride + row % 8 * swizzles.PATTERNS[swizzle].span_bytes + byte
    return _finish(phase + offsets, swizzle, pattern_start)


@lru_cache(maxsize=1024)
def _mn_major(phase: int, strides: _Strides, rows: int, k: int, element_bytes: int) -> Addresses:
    """Rows contiguous, `span` bytes of them; K goes down the lines of the pattern.

    The strides change roles: without swizzle the leading one steps along K and the other along the
    rows, with a swizzle it is the reverse. With 32-byte atoms the pattern has 4 lines, not 8.
    """
    leading, stride, swizzle, pattern_start = strides
    span = swizzles.PATTERNS[swizzle].span_bytes
    lines = 4 if swizzle is Swizzle.B128_ATOM32 else 8
    along_rows, along_k = (stride, leading) if swizzle is Swizzle.NONE else (leading, stride)
    row, depth = np.arange(rows)[:, None, None], np.arange(k)[:, None]
    per_line = span // element_bytes
    offsets = row // per_line * along_rows + row % per_line * element_bytes
    offsets = offsets + depth // lines * along_k + depth % lines * span + np.arange(element_bytes)
    addresses = (phase + offsets).reshape(rows, k * element_bytes)
    return _finish(addresses, swizzle, pattern_start)


def _finish(addresses: npt.NDArray[Any], swizzle: Swizzle, pattern_start: int) -> Addresses:
    swizzled: Addresses = swizzles.apply(swizzle, addresses, pattern_start).astype(np.intp)
    swizzled.setflags(write=False)
    return swizzled
