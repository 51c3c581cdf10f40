"""The bytes of a file around an index: header, parts, padding. Knows no kernels, no disk."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from kernelpack.bundle import tree
from kernelpack.bundle.format import (
    DIGEST_BYTES,
    FAN_OUT,
    FRAME,
    HEADER,
    MAGIC,
    MAJOR,
    MINOR,
    PAGE_BYTES,
    PART,
    REQUIRED,
    Part,
    aligned,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The parts of a file to pack: an index, frames in the order of its images, and the rest."""

    index: bytes
    frames: tuple[bytes, ...]
    dictionary: bytes
    documents: bytes
    compressor: int
    signature: bytes = b""


def pack(contents: Contents) -> bytes:
    """The bytes of a file."""
    digests, root = tree.build(contents.index)
    parts = {
        Part.INDEX: contents.index,
        Part.TREE: digests,
        Part.FRAMES: _frame_table(contents.frames),
        Part.DICTIONARY: contents.dictionary,
        Part.DOCUMENTS: contents.documents,
        Part.IMAGES: b"".join(map(_padded, contents.frames)),
        Part.SIGNATURE: contents.signature,
    }
    body = b"".join(map(_padded, parts.values()))
    return _pack_header(parts, root, contents.compressor, len(body)) + body


def seal(data: bytes, signature: bytes) -> bytes:
    """The bytes of a file with another signature; all else stays as it is."""
    *head, size, _, count, page, fan_out, compressor, root = HEADER.unpack_from(data)
    table = list(PART.iter_unpack(data[HEADER.size : size - DIGEST_BYTES]))
    at = next(n for n, row in enumerate(table) if row[0] == Part.SIGNATURE)
    start, old = table[at][2:4]
    assert len(data) == start + aligned(old), "the signature is the last part"
    table[at] = (Part.SIGNATURE, 0, start, len(signature), sha256(signature).digest())
    body = data[size:start] + _padded(signature)
    new = HEADER.pack(*head, size, size + len(body), count, page, fan_out, compressor, root)
    new += b"".join(PART.pack(*row) for row in table)
    return new + sha256(new).digest() + body


def _padded(data: bytes) -> bytes:
    return data + bytes(aligned(len(data)) - len(data))


def _frame_table(frames: Iterable[bytes]) -> bytes:
    rows, start = [], 0
    for frame in frames:
        rows.append(FRAME.pack(start, len(frame)))
        start += aligned(len(frame))
    return b"".join(rows)


def _pack_header(parts: Mapping[Part, bytes], root: bytes, compressor: int, body: int) -> bytes:
    size = HEADER.size + PART.size * len(parts) + DIGEST_BYTES
    counts = (len(parts), PAGE_BYTES, FAN_OUT, compressor)
    head = HEADER.pack(MAGIC, MAJOR, MINOR, size, size + body, *counts, root)
    start = size
    for part, data in parts.items():
        flags = 0 if part is Part.SIGNATURE else REQUIRED
        head += PART.pack(part, flags, start, len(data), sha256(data).digest())
        start += aligned(len(data))
    return head + sha256(head).digest()
