"""Sub-byte elements in bytes: dense, padded to 16-byte chunks, and one a byte.

Element 0 is in the lowest bits. The padded forms are what TMA writes to shared memory for
`.b4x16_p64` and `.b6x16_p32`: 16 elements at the start of 16 bytes (PTX ISA 9.1, 5.5.1.1).
Arrays are uint8; packing works on the last axis.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


def pack(codes: npt.NDArray[Any], bits: int) -> Bytes:
    """Put codes of 4, 6 or 8 bits densely into bytes; (..., n) -> (..., n * bits / 8)."""
    if bits == 8:
        return codes.astype(np.uint8)
    group, size = _group(bits)
    fields = codes.reshape(*codes.shape[:-1], codes.shape[-1] // group, group).astype(np.uint32)
    word = np.zeros(fields.shape[:-1], np.uint32)
    for i in range(group):
        word |= fields[..., i] << np.uint32(bits * i)
    parts = [(word >> np.uint32(8 * i)).astype(np.uint8) for i in range(size)]
    return np.stack(parts, -1).reshape(*codes.shape[:-1], codes.shape[-1] * bits // 8)


def unpack(packed: Bytes, bits: int) -> Bytes:
    """Take dense codes apart, one a byte; (..., n * bits / 8) -> (..., n)."""
    if bits == 8:
        return packed
    group, size = _group(bits)
    parts = packed.reshape(*packed.shape[:-1], packed.shape[-1] // size, size).astype(np.uint32)
    word = np.zeros(parts.shape[:-1], np.uint32)
    for i in range(size):
        word |= parts[..., i] << np.uint32(8 * i)
    mask = np.uint32((1 << bits) - 1)
    codes = [((word >> np.uint32(bits * i)) & mask).astype(np.uint8) for i in range(group)]
    return np.stack(codes, -1).reshape(*packed.shape[:-1], packed.shape[-1] * 8 // bits)


def _group(bits: int) -> tuple[int, int]:
    """Elements and bytes of the smallest whole number of bytes: 2 nibbles, or 4 six-bit codes."""
    assert bits in (4, 6), f"no packing of {bits}-bit elements"
    return (2, 1) if bits == 4 else (4, 3)


def pad(packed: Bytes, bits: int, fill: int = 0) -> Bytes:
    """Give every 16 dense elements 16 bytes, the rest `fill`."""
    chunk = 2 * bits
    chunks = packed.reshape(*packed.shape[:-1], -1, chunk)
    padded = np.full((*chunks.shape[:-1], 16), fill, np.uint8)
    padded[..., :chunk] = chunks
    return padded.reshape(*packed.shape[:-1], -1)


def unpad(padded: Bytes, bits: int) -> Bytes:
    """Drop the padding of 16-byte chunks."""
    chunks = padded.reshape(*padded.shape[:-1], -1, 16)[..., : 2 * bits]
    return chunks.reshape(*padded.shape[:-1], -1)
