"""What a later version may add: what this one does not know is skipped, or refused by name."""

import struct

import pytest

from kernelpack.bundle.format import (
    FIELDS,
    INDEX,
    RECORD,
    ROWS,
    SECTION,
    Kind,
    Section,
)
from kernelpack.bundle.reader import open_bundle
from kernelpack.errors import BundleError
from tests.bundle.forge import (
    COUNT,
    OFFSET,
    STRIDE,
    forge,
    poke_row,
    put_section,
    read_all,
    section_row,
    start_of,
)

VARIANT = 6
"""The field of an entry's row that says where its variant is."""


def test_a_target_of_the_future(bundle_path, entries):
    """Entries for a target that this version does not know are listed, and are not variants."""
    rename_target(bundle_path)
    bundle = open_bundle(bundle_path)
    assert (len(bundle.records()), len(bundle.variants())) == (len(entries), len(entries) // 2)


def test_a_variant_of_the_future(bundle_path):
    """The variant of such an entry is refused by name."""
    rename_target(bundle_path)
    bundle = open_bundle(bundle_path)
    unknown = next(r.id for r in bundle.records() if r.target == "sm_200a")
    with pytest.raises(BundleError, match="target sm_200a is not known") as caught:
        bundle.variant(unknown)
    assert caught.value.hint == "upgrade kernelpack"


def rename_target(path):
    def edit(index: bytearray) -> None:
        at = index.index(b"sm_100a", start_of(index, Section.STRINGS))
        index[at : at + 7] = b"sm_200a"

    forge(path, edit)


def test_optional_additions_are_ignored(bundle_path, sound):
    """A section that this version does not know is skipped where it is not required."""
    forge(bundle_path, add_section(flags=0))
    assert read_all(sound) == read_all(bundle_path)


def test_required_additions_are_refused(bundle_path):
    """A section that is required and unknown is refused, with what to do."""
    forge(bundle_path, add_section(flags=1))
    with pytest.raises(BundleError, match="needs section 40") as caught:
        open_bundle(bundle_path)
    assert caught.value.hint == "upgrade kernelpack"


def add_section(*, flags: int):
    """An edit that appends a section of 8 bytes."""

    def edit(index: bytearray) -> None:
        head = list(INDEX.unpack_from(index))
        table = [list(row) for row in SECTION.iter_unpack(index[INDEX.size : section_row(8)])]
        body = index[section_row(8) :]
        for row in table:
            row[OFFSET] += SECTION.size
        head[1], head[2] = head[1] + 1, len(index) + SECTION.size + 8
        table.append([40, flags, len(index) + SECTION.size, 1, 8])
        index[:] = INDEX.pack(*head) + b"".join(SECTION.pack(*row) for row in table)
        index += body + bytes(8)

    return edit


def test_longer_rows_are_read(bundle_path, sound):
    """Fields that a later minor version appends to the rows of a table are skipped."""

    def edit(index: bytearray) -> None:
        fields = list(SECTION.unpack_from(index, section_row(Section.ENTRIES)))
        start, count, stride = fields[OFFSET:]
        rows = [index[start + at * stride : start + (at + 1) * stride] for at in range(count)]
        index[start : start + count * stride] = b"".join(row + b"\xff" * 8 for row in rows)
        put_section(Section.ENTRIES, STRIDE, stride + 8)(index)
        move(index, (Section.IMAGES, Section.RECORDS), 8 * count)

    forge(bundle_path, edit)
    assert read_all(sound) == read_all(bundle_path)


def test_longer_records_are_read(bundle_path, sound):
    """Fields that a later minor version appends to a record are skipped."""

    def edit(index: bytearray) -> None:
        fields = list(SECTION.unpack_from(index, section_row(Section.RECORDS)))
        at = ROWS[Section.ENTRIES].unpack_from(index, start_of(index, Section.ENTRIES))[VARIANT]
        size = RECORD.size + FIELDS[Kind.VARIANT].size
        old = index[fields[OFFSET] + at : fields[OFFSET] + at + size]
        index += RECORD.pack(Kind.VARIANT, size + 8) + old[RECORD.size :] + b"\xff" * 8
        poke_row(Section.ENTRIES, 0, VARIANT, 8 * fields[COUNT])(index)
        put_section(Section.RECORDS, COUNT, fields[COUNT] + (size + 8) // 8)(index)
        move(index, (), size + 8)

    forge(bundle_path, edit)
    assert read_all(sound) == read_all(bundle_path)


def move(index: bytearray, sections: tuple[Section, ...], by: int) -> None:
    """Say that an index is longer, and that sections start later."""
    for section in sections:
        put_section(section, OFFSET, start_of(index, section) + by)(index)
    struct.pack_into("<Q", index, 8, len(index))
