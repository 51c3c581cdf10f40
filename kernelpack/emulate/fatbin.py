"""The PTX texts of a fat binary, the container that nvcc embeds in a host program.

    head     u32 magic 0xBA55ED50 · u16 version · u16 head bytes · u64 size of what follows
    entries  u16 kind (1 PTX, 2 machine code) · u16 version · u32 head bytes · u64 payload bytes
             … at 28: u32 architecture (100 for sm_100) · at 40: u64 flags, then the payload

The layout is not documented; it was read off what nvcc 12.9 to 13.4 write.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from kernelpack.errors import UnsupportedError

MAGIC = 0xBA55ED50
_HEAD = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQ12xI8xQ")
_PTX = 1
_COMPRESSED = 0x2000 | 0x8000
"""The flags of a payload compressed with LZ4 and with Zstandard."""


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: int
    architecture: int
    flags: int
    payload: bytes


def ptx_texts(image: bytes) -> tuple[str, ...]:
    """Every PTX text of an image: a fat binary, or a text itself.

    Raises:
        UnsupportedError: the image is machine code, holds no PTX, or holds it compressed.

    """
    if image[:4] == b"\x7fELF":
        raise UnsupportedError(
            "a module of machine code alone",
            hint=f"{_EMBED}; of a bundle of kernelpack, name that: --bundle",
        )
    if image[:4] != MAGIC.to_bytes(4, "little"):
        return (image.rstrip(b"\0").decode("latin1"),)
    entries = [entry for entry in _entries(image) if entry.kind == _PTX]
    if not entries:
        raise UnsupportedError("a fat binary without PTX", hint=_EMBED)
    if any(entry.flags & _COMPRESSED for entry in entries):
        raise UnsupportedError(
            "a fat binary with compressed PTX", hint="compile with --compress-mode=none"
        )
    return tuple(entry.payload.rstrip(b"\0").decode("latin1") for entry in entries)


_EMBED = "embed PTX: nvcc -gencode arch=compute_100a,code=compute_100a --compress-mode=none"


def split(section: bytes) -> tuple[bytes, ...]:
    """The fat binaries of a program's section, one after the other."""
    magic, found = MAGIC.to_bytes(4, "little"), []
    at = section.find(magic)
    while 0 <= at <= len(section) - _HEAD.size:
        _, _, start, size = _HEAD.unpack_from(section, at)
        end = at + max(start, _HEAD.size) + size
        found.append(section[at:end])
        at = section.find(magic, end)
    return tuple(found)


def _entries(image: bytes) -> Iterator[_Entry]:
    try:
        _, _, start, size = _HEAD.unpack_from(image)
        end = min(start + size, len(image))
        while start < end:
            kind, _, head, payload, architecture, flags = _ENTRY.unpack_from(image, start)
            raw = image[start + head : start + head + payload]
            yield _Entry(kind, architecture, flags, raw)
            start += max(head + payload, _ENTRY.size)
    except struct.error as error:
        raise UnsupportedError("a damaged fat binary", hint=_EMBED) from error
