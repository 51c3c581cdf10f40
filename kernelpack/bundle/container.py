"""The bytes of a file around an index: header and parts. Knows nothing of kernels or disks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from kernelpack.bundle import tree
from kernelpack.bundle.format import (
    ALIGN,
    DAMAGED,
    DIGEST_BYTES,
    FAN_OUT,
    FRAME,
    HEADER,
    MAGIC,
    MAJOR,
    MAX_HEADER_BYTES,
    MINOR,
    PAGE_BYTES,
    PART,
    REQUIRED,
    Part,
    aligned,
)
from kernelpack.errors import BundleError

KNOWN_PARTS = frozenset(Part)


@dataclass(frozen=True, slots=True)
class Extent:
    """Where a part lies in the file; bytes."""

    offset: int
    size: int
    digest: bytes = field(repr=False)

    @property
    def end(self) -> int:
        """The first byte after it."""
        return self.offset + self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a file is packed from: an index, frames in the order of its images, and the rest."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The header of a file, checked against the file's size."""

    minor: int
    compressor: int
    root: bytes
    parts: Mapping[int, Extent]


def read_header(data: memoryview, where: str) -> Header:
    """The header of a file that starts with the magic.

    Args:
        data: the whole file.
        where: the file, for messages.

    Raises:
        BundleError: another format, a truncated or damaged file.

    """
    if len(data) < HEADER.size + DIGEST_BYTES:
        raise BundleError(f"truncated: {len(data)} bytes", where=where, hint=DAMAGED)
    fields = HEADER.unpack_from(data)
    _, major, minor, size, file_bytes, count, page_bytes, fan_out, compressor, root = fields
    _check_version(major, minor, where)
    if size != HEADER.size + PART.size * count + DIGEST_BYTES or size > MAX_HEADER_BYTES:
        what = f"a header of {size} bytes cannot hold {count} parts"
        raise BundleError(what, where=where, hint=DAMAGED)
    if len(data) != file_bytes:
        state = "truncated" if len(data) < file_bytes else "bytes after the end"
        what = f"{state}: {len(data)} bytes where the header says {file_bytes}"
        raise BundleError(what, where=where, hint=DAMAGED)
    end = size - DIGEST_BYTES
    if sha256(data[:end]).digest() != data[end:size]:
        raise BundleError("the header is not what its digest says", where=where, hint=DAMAGED)
    if (page_bytes, fan_out) != (PAGE_BYTES, FAN_OUT):
        what = f"pages of {page_bytes} bytes, {fan_out} a node: not format 1"
        raise BundleError(what, where=where, hint=DAMAGED)
    parts = _read_parts(data, size, count, where)
    return Header(minor=minor, compressor=compressor, root=root, parts=parts)


def _check_version(major: int, minor: int, where: str) -> None:
    if major == MAJOR:
        return
    what = f"bundle format {major}.{minor}; this kernelpack reads {MAJOR}.x"
    newer = "upgrade kernelpack, or build the bundle with this version"
    hint = newer if major > MAJOR else "build the bundle again with this version"
    raise BundleError(what, where=where, hint=hint)


def _read_parts(data: memoryview, start: int, count: int, where: str) -> dict[int, Extent]:
    """The parts by tag: in order, inside the file, each once."""
    parts: dict[int, Extent] = {}
    for row in range(count):
        tag, flags, offset, size, digest = PART.unpack_from(data, HEADER.size + row * PART.size)
        if tag not in KNOWN_PARTS and flags & REQUIRED:
            what = f"the file needs part {tag}, which this version does not know"
            raise BundleError(what, where=where, hint="upgrade kernelpack")
        if offset % ALIGN or offset < start or offset + size > len(data) or tag in parts:
            what = f"part {tag}, {size} bytes at {offset}, overlaps another or leaves the file"
            raise BundleError(what, where=where, hint=DAMAGED)
        parts[tag] = Extent(offset, size, digest)
        start = offset + size
    missing = [part.name.lower() for part in Part if part not in parts]
    if missing:
        raise BundleError(f"no part {', '.join(missing)}", where=where, hint=DAMAGED)
    return parts


def check_parts(data: memoryview, header: Header, where: str) -> None:
    """Hold every byte of a file against the header: the digest of each part, zeros between.

    Raises:
        BundleError: names the part that was changed.

    """
    end = HEADER.size + PART.size * len(header.parts) + DIGEST_BYTES
    for tag, part in header.parts.items():
        name = Part(tag).name.lower() if tag in KNOWN_PARTS else f"part {tag}"
        if any(data[end : part.offset]):
            raise BundleError(f"bytes before the {name} are not zero", where=where, hint=DAMAGED)
        if sha256(data[part.offset : part.end]).digest() != part.digest:
            what = f"the {name}, bytes {part.offset} to {part.end}, are not what their digest says"
            raise BundleError(what, where=where, hint=DAMAGED)
        end = part.end
    if any(data[end:]):
        raise BundleError("bytes after the last part are not zero", where=where, hint=DAMAGED)
