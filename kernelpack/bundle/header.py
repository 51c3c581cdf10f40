"""The header of a file: which parts it has and where, checked before any is used."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from kernelpack.bundle.file import BundleFile
from kernelpack.bundle.format import (
    ALIGN,
    DIGEST_BYTES,
    FAN_OUT,
    HEADER,
    MAJOR,
    MAX_HEADER_BYTES,
    PAGE_BYTES,
    PART,
    REQUIRED,
    Part,
)
from kernelpack.errors import BundleError

KNOWN_PARTS = frozenset(Part)
CHUNK_BYTES = 1 << 20


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
class Header:
    """The header of a file.

    Attributes:
        size: its bytes.
        minor: the minor version of the format that wrote it.
        compressor: the version of zstd that wrote the frames.
        root: the digest that the index leads to.
        parts: where each part lies, by tag.

    """

    size: int
    minor: int
    compressor: int
    root: bytes
    parts: Mapping[int, Extent]


def read_header(file: BundleFile) -> Header:
    """The header of a file that starts with the magic.

    Raises:
        BundleError: another format, a truncated or damaged file.

    """
    data = file.read(0, min(file.size, MAX_HEADER_BYTES))
    if len(data) < HEADER.size + DIGEST_BYTES:
        raise file.refuse(f"truncated: {len(data)} bytes")
    _, major, minor, size, file_size, count, *geometry, root = HEADER.unpack_from(data)
    _check_version(major, minor, file.where)
    if file.size != file_size:
        state = "truncated" if file.size < file_size else "bytes after the end"
        raise file.refuse(f"{state}: {file.size} bytes where the header says {file_size}")
    if size != HEADER.size + PART.size * count + DIGEST_BYTES or size > len(data):
        raise file.refuse(f"a header of {size} bytes cannot hold {count} parts")
    end = size - DIGEST_BYTES
    if sha256(data[:end]).digest() != data[end:size]:
        raise file.refuse("the header is not what its digest says")
    page_bytes, fan_out, compressor = geometry
    if (page_bytes, fan_out) != (PAGE_BYTES, FAN_OUT):
        raise file.refuse(f"pages of {page_bytes} bytes, {fan_out} a node: not format {MAJOR}")
    parts = _read_parts(file, data[HEADER.size : end], size)
    return Header(size=size, minor=minor, compressor=compressor, root=root, parts=parts)


def root_of(data: bytes) -> str:
    """The root that the header of a file's bytes states, lower-case hex."""
    root: bytes = HEADER.unpack_from(data)[-1]
    return root.hex()


def _check_version(major: int, minor: int, where: str) -> None:
    if major == MAJOR:
        return
    what = f"bundle format {major}.{minor}; this kernelpack reads {MAJOR}.x"
    newer = "upgrade kernelpack, or build the bundle with this version"
    hint = newer if major > MAJOR else "build the bundle again with this version"
    raise BundleError(what, where=where, hint=hint)


def _read_parts(file: BundleFile, table: bytes, start: int) -> dict[int, Extent]:
    """The parts by tag: in order, inside the file, each once."""
    parts: dict[int, Extent] = {}
    for tag, flags, offset, size, digest in PART.iter_unpack(table):
        if tag not in KNOWN_PARTS and flags & REQUIRED:
            what = f"the file needs part {tag}, which this version does not know"
            raise BundleError(what, where=file.where, hint="upgrade kernelpack")
        if offset % ALIGN or offset < start or tag in parts:
            raise file.refuse(f"part {tag} at {offset} overlaps another, or is there twice")
        parts[tag] = Extent(offset, size, digest)
        start = offset + size
    if start > file.size:
        raise file.refuse(f"parts that end at {start} in a file of {file.size} bytes")
    if missing := KNOWN_PARTS - parts.keys():
        raise file.refuse(f"no part {', '.join(part.name.lower() for part in sorted(missing))}")
    return parts


def check_parts(file: BundleFile, header: Header) -> None:
    """Check every byte of a file against the header: the digest of each part, zeros between.

    Raises:
        BundleError: names the part that was changed.

    """
    end = header.size
    for tag, part in header.parts.items():
        name = Part(tag).name.lower() if tag in KNOWN_PARTS else f"part {tag}"
        _check_padding(file, end, part.offset)
        if _digest(file, part) != part.digest:
            raise file.refuse(
                f"the {name}, bytes {part.offset} to {part.end}, are not what their digest says"
            )
        end = part.end
    _check_padding(file, end, file.size)


def _check_padding(file: BundleFile, start: int, end: int) -> None:
    for at in range(start, end, CHUNK_BYTES):
        if any(file.read(at, min(CHUNK_BYTES, end - at))):
            raise file.refuse(f"bytes {start} to {end}, between two parts, are not zero")


def _digest(file: BundleFile, part: Extent) -> bytes:
    digest = sha256()
    for at in range(part.offset, part.end, CHUNK_BYTES):
        digest.update(file.read(at, min(CHUNK_BYTES, part.end - at)))
    return digest.digest()
