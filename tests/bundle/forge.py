"""Bundles made to hurt: sound digests over an index, frames or parts that someone changed."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from kernelpack.bundle.container import Contents, pack
from kernelpack.bundle.file import BundleFile
from kernelpack.bundle.format import (
    DIGEST_BYTES,
    FIELDS,
    FRAME,
    HEADER,
    INDEX,
    PART,
    RECORD,
    ROWS,
    SECTION,
    WORD,
    Kind,
    Part,
    Section,
)
from kernelpack.bundle.header import read_header
from kernelpack.bundle.reader import open_bundle


def contents_of(path: Path) -> Contents:
    """The parts that a bundle was packed from."""
    file = BundleFile(path)
    header = read_header(file)

    def part(tag: Part) -> bytes:
        extent = header.parts[tag]
        return file.read(extent.offset, extent.size)

    images = part(Part.IMAGES)
    return Contents(
        index=part(Part.INDEX),
        frames=tuple(images[at : at + n] for at, n in FRAME.iter_unpack(part(Part.FRAMES))),
        dictionary=part(Part.DICTIONARY),
        documents=part(Part.DOCUMENTS),
        compressor=header.compressor,
        signature=part(Part.SIGNATURE),
    )


def reseal(path: Path, **parts: Any) -> Path:
    """Replace parts of a bundle; every digest is made anew."""
    path.write_bytes(pack(replace(contents_of(path), **parts)))
    return path


def forge(path: Path, edit: Callable[[bytearray], None]) -> Path:
    """Edit the index of a bundle; every digest is made anew."""
    index = bytearray(contents_of(path).index)
    edit(index)
    return reseal(path, index=bytes(index))


def forge_all(
    sound: Path, folder: Path, edits: Iterable[Callable[[bytearray], None]]
) -> Iterator[Path]:
    """One copy of a bundle for each edit of its index; every digest is made anew."""
    contents = contents_of(sound)
    for number, edit in enumerate(edits):
        index = bytearray(contents.index)
        edit(index)
        path = folder / f"{number}.kpk"
        path.write_bytes(pack(replace(contents, index=bytes(index))))
        yield path


def reseal_header(path: Path, edit: Callable[[bytearray], None]) -> Path:
    """Edit the header of a bundle; its own digest is made anew."""
    data = bytearray(path.read_bytes())
    edit(data)
    end = int.from_bytes(data[12:16], "little")
    data[end - DIGEST_BYTES : end] = sha256(data[: end - DIGEST_BYTES]).digest()
    path.write_bytes(data)
    return path


def part_row(part: Part) -> int:
    """Where a part's row starts in the file."""
    return HEADER.size + (part - 1) * PART.size


def section_row(section: Section) -> int:
    """Where a section's row starts in the index."""
    return INDEX.size + (section - 1) * SECTION.size


def start_of(index: bytes | bytearray, section: Section) -> int:
    """Where a section starts in the index."""
    return int(SECTION.unpack_from(index, section_row(section))[2])


def poke_row(
    section: Section, row: int, field: int, value: int | bytes
) -> Callable[[bytearray], None]:
    """An edit of one u32 field of a row; fields before it that are digests count as one each."""

    def edit(index: bytearray) -> None:
        at = start_of(index, section) + row * ROWS[section].size
        fields = list(ROWS[section].unpack_from(index, at))
        fields[field] = value
        ROWS[section].pack_into(index, at, *fields)

    return edit


TAG, FLAGS, OFFSET, COUNT, STRIDE = range(5)
"""Fields of a section's row."""


def put_section(section: Section, field: int, value: int) -> Callable[[bytearray], None]:
    """An edit of one field of a section's row."""

    def edit(index: bytearray) -> None:
        fields = list(SECTION.unpack_from(index, section_row(section)))
        fields[field] = value
        SECTION.pack_into(index, section_row(section), *fields)

    return edit


def poke_record(kind: Kind, field: int, value: object) -> Callable[[bytearray], None]:
    """An edit of one field of the first record of a kind."""

    def edit(index: bytearray) -> None:
        at = find_record(index, kind) + RECORD.size
        fields = list(FIELDS[kind].unpack_from(index, at))
        fields[field] = value
        FIELDS[kind].pack_into(index, at, *fields)

    return edit


def find_record(index: bytes | bytearray, kind: Kind) -> int:
    """Where the first record of a kind starts; of expressions, the first of one word."""
    tail = WORD.size if kind is Kind.EXPRESSION else 0
    start = RECORD.pack(kind, RECORD.size + FIELDS[kind].size + tail)
    places = range(start_of(index, Section.RECORDS), len(index), WORD.size)
    return next(at for at in places if index[at : at + RECORD.size] == start)


def read_all(path: Path) -> tuple[object, ...]:
    """Everything that a bundle says, after every check."""
    open_bundle(path).verify_all()
    return read_unverified(path)


def read_unverified(path: Path) -> tuple[object, ...]:
    """Everything that a bundle says, each thing checked when it is read."""
    bundle = open_bundle(path)
    records, variants = bundle.records(), bundle.variants()
    images = tuple(bundle.image(record.id) for record in records)
    found = tuple(bundle.find(record.id) for record in records)
    rest = (bundle.provenance, bundle.targets, bundle.kernels, bundle.documents())
    return (records, variants, images, found, *rest)
