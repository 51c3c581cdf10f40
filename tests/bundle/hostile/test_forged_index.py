"""Bundles made to hurt: every digest is right, and what they cover is not. Each is refused."""

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelpack.bundle.format import (
    ROWS,
    Kind,
    Section,
)
from kernelpack.bundle.reader import open_bundle
from kernelpack.errors import BundleError
from tests.bundle.forge import (
    COUNT,
    OFFSET,
    STRIDE,
    TAG,
    find_record,
    forge,
    poke_record,
    poke_row,
    put_section,
    read_all,
    start_of,
)
from tests.fakes.bundles import write_bundle
from tests.fakes.variants import NUMBERS, variant

BIG = 2**32 - 1


def put(layout: str, at: int, value: int):
    """An edit of one number of the index."""

    def edit(index: bytearray) -> None:
        struct.pack_into(layout, index, at, value)

    return edit


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (put("<I", 0, 2), "images of kind 2"),
        (put("<I", 4, BIG), "index head"),
        (put("<I", 4, 0), "no section"),
        (put("<I", 4, 60), "overlaps|leaves|needs section|rows of|do not fit|is there twice"),
        (put("<Q", 8, 2**63), "index head"),
        (put("<Q", 16, 2**40), "index head"),
        (put_section(Section.ENTRIES, TAG, 99), "needs section 99"),
        (put_section(Section.ENTRIES, TAG, Section.KERNELS), "twice"),
        (put_section(Section.ENTRIES, OFFSET, 0), "overlaps"),
        (put_section(Section.ENTRIES, OFFSET, 4), "overlaps"),
        (put_section(Section.ENTRIES, OFFSET, 2**64 - 8), "overlaps|sections of"),
        (put_section(Section.ENTRIES, COUNT, 2**64 - 1), "overlaps|sections of"),
        (put_section(Section.RECORDS, COUNT, 2**61), "sections of"),
        (put_section(Section.ENTRIES, STRIDE, 0), "rows of 0 bytes"),
        (put_section(Section.ENTRIES, STRIDE, 144), "rows of 144 bytes"),
        (put_section(Section.ENTRIES, STRIDE, 153), "rows of 153 bytes"),
        (put_section(Section.STRINGS, STRIDE, 8), "rows of 8 bytes"),
        (put_section(Section.RECORDS, STRIDE, 16), "rows of 16 bytes"),
        (put_section(Section.IMAGES, COUNT, 1), "a frame table of"),
    ],
)
def test_an_absurd_index(bundle_path, edit, what):
    """Sections that leave the index, overlap, or have impossible rows are refused at once."""
    forge(bundle_path, edit)
    with pytest.raises(BundleError, match=what):
        open_bundle(bundle_path)


IMAGE, KERNEL, TARGET, VARIANT, ID = 3, 4, 5, 6, 7


def swap_entries(index: bytearray) -> None:
    """An edit that lists a kernel's first two entries the other way round."""
    fields = ROWS[Section.KERNELS].unpack_from(index, start_of(index, Section.KERNELS))
    at = start_of(index, Section.RECORDS) + fields[6]
    index[at : at + 8] = index[at + 4 : at + 8] + index[at : at + 4]


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (poke_row(Section.ENTRIES, 0, IMAGE, BIG), "row 4294967295 of images"),
        (poke_row(Section.ENTRIES, 0, KERNEL, 1), "kernel 0 lists row 0, which is of 1"),
        (swap_entries, "the entries of kernel 0 are not sorted by id"),
        (poke_row(Section.PROVENANCE, 1, 1, 0), "provenance is not sorted by key"),
        (poke_row(Section.ENTRIES, 0, TARGET, 2), "row 2 of targets"),
        (poke_row(Section.ENTRIES, 0, VARIANT, 4), "leave the records"),
        (poke_row(Section.ENTRIES, 0, VARIANT, 0), "a record of 0 bytes"),
        (poke_row(Section.ENTRIES, 0, VARIANT, BIG - 7), "leave the records"),
        (poke_row(Section.ENTRIES, 0, ID, BIG), "leaves the strings"),
        (poke_row(Section.ENTRIES, 0, ID + 1, BIG), "leaves the strings"),
        (poke_row(Section.ENTRIES, 0, 0, bytes(32)), "filed under another id"),
        (poke_row(Section.ENTRIES, 0, TARGET, 0), "holds the variant|filed under"),
        (poke_row(Section.KERNELS, 0, 3, 100), "100 sizes and 8 names"),
        (poke_row(Section.KERNELS, 0, 5, BIG), "a list of 4294967295"),
        (poke_row(Section.KERNELS, 0, 7, BIG), "a list of 4294967295"),
        (poke_row(Section.KERNELS, 0, 7, 1), "list every entry once"),
        (poke_row(Section.TARGETS, 0, 3, BIG), "a list of 4294967295"),
        (poke_row(Section.TARGETS, 0, 2, 4), "leave the records"),
        (poke_row(Section.PROVENANCE, 0, 3, BIG), "leaves the strings"),
    ],
)
def test_absurd_rows(bundle_path, edit, what):
    """Rows that point nowhere, or to what is not theirs, are refused."""
    forge(bundle_path, edit)
    with pytest.raises(BundleError, match=what):
        read_all(bundle_path)


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (poke_row(Section.NUMBERS, 0, 0, 1), "numbers of kernel 1 of 1"),
        (poke_row(Section.NUMBERS, 0, 3, BIG), "a list of"),
        (poke_row(Section.NUMBERS, 0, 3, 1), "names number 1 of 1"),
        (poke_record(Kind.NUMBER, 1, BIG), "leaves the strings"),
        (poke_record(Kind.NUMBER, 6, float("nan")), "is NaN by default"),
        (poke_record(Kind.NUMBER_PARAM, 4, 13), "a parameter of e4m3, which takes no number"),
        (poke_record(Kind.NUMBER_PARAM, 4, 99), "dtype 99"),
        (poke_record(Kind.NUMBER_PARAM, 5, 2), "names number 2 of 2"),
        (put_section(Section.NUMBERS, TAG, 9), "needs section 9, which this version"),
        (put_section(Section.NUMBERS, COUNT, 0), "names number 0 of 0"),
    ],
)
def test_absurd_numbers(tmp_path, edit, what):
    """Numbers that are missing, or are not numbers, are refused."""
    path = write_bundle(tmp_path / "numbers.kpk", [variant(numbers=NUMBERS)])
    forge(path, edit)
    with pytest.raises(BundleError, match=what):
        read_all(path)


@pytest.mark.parametrize(
    ("kind", "field", "value", "what"),
    [
        (Kind.EXPRESSION, 2, BIG, "words"),
        (Kind.EXPRESSION, 2, 0, "does not leave one value"),
        (Kind.EXPRESSION, 3, BIG, "deep"),
        (Kind.EXPRESSION, 3, 0, "within 0"),
        (Kind.ARGUMENT, 2, 99, "dtype 99"),
        (Kind.ARGUMENT, 3, 3, "access 3"),
        (Kind.ARGUMENT, 4, 0, "aligned to 0 bytes"),
        (Kind.ARGUMENT, 7, BIG, "a list of"),
        (Kind.POINTER, 2, 1, "not where its target"),
        (Kind.POINTER, 4, 5, "argument 5 of 5"),
        (Kind.SCALAR, 4, 10, "an integer parameter of fp32"),
        (Kind.SCALAR, 4, 99, "dtype 99"),
        (Kind.SCALAR, 5, 4, "leave the records"),
        (Kind.MAP, 6, BIG, "argument 4294967295 of 5"),
        (Kind.MAP, 7, 16, "element 16"),
        (Kind.MAP, 8, 7, "swizzle 7"),
        (Kind.MAP, 9, 3, "interleave 3"),
        (Kind.MAP, 10, 2, "fill 2"),
        (Kind.MAP, 11, 4, "promotion 4"),
        (Kind.GUARD, 0, 4, "leave the records"),
        (Kind.GUARD, 3, BIG, "leaves the strings"),
        (Kind.CONSTANT, 2, 0, "holds the variant"),
        (Kind.LAUNCH, 1, 4, "leave the records"),
        (Kind.VARIANT, 0, 1, "its variant of 1"),
        (Kind.VARIANT, 13, BIG, "a list of"),
    ],
)
def test_absurd_records(bundle_path, kind, field, value, what):
    """Records with numbers that mean nothing, or refs that lead nowhere, are refused."""
    forge(bundle_path, poke_record(kind, field, value))
    with pytest.raises(BundleError, match=what):
        read_all(bundle_path)


@pytest.mark.parametrize("size", [0, 7, 9, 16, 2**31])
def test_an_absurd_record_size(bundle_path, size):
    """A record that is shorter than its fields, or leaves the section, is refused."""

    def edit(index: bytearray) -> None:
        struct.pack_into("<I", index, find_record(index, Kind.LAUNCH) + 4, size)

    forge(bundle_path, edit)
    with pytest.raises(BundleError, match=r"a record of|record \d+ is of kind 9|leave the records"):
        open_bundle(bundle_path).variants()


@pytest.mark.parametrize(
    ("word", "what"),
    [
        ((27, 0, 0, 0), "operation 27"),
        ((255, 0, 0, 0), "operation 255"),
        ((0, 1, 0, 0), "ends within a constant"),
        ((1, 1, 0, 0), "wide 1"),
        ((1, 0, 0, 8), "names size 8 of 8"),
        ((1, 0, 0, -1), "names size -1 of 8"),
        ((2, 0, 0, 0), "does not leave one value"),
    ],
)
def test_absurd_code(bundle_path, word, what):
    """Code that would read outside its stack, names or words is refused before it can run."""

    def edit(index: bytearray) -> None:
        struct.pack_into("<BBHi", index, find_record(index, Kind.EXPRESSION) + 24, *word)

    forge(bundle_path, edit)
    with pytest.raises(BundleError, match=what):
        open_bundle(bundle_path).variants()


def test_text_that_is_not_utf8(bundle_path):
    """Bytes that are not UTF-8 are refused."""

    def edit(index: bytearray) -> None:
        index[start_of(index, Section.STRINGS)] = 0xFF

    forge(bundle_path, edit)
    with pytest.raises(BundleError, match="is not UTF-8"):
        read_all(bundle_path)


@settings(
    deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    edits=st.lists(
        st.tuples(st.integers(0), st.binary(min_size=1, max_size=12)), min_size=1, max_size=5
    )
)
def test_random_forgery(sound, bundle_path, edits):
    """An index with random bytes under right digests is read or refused, nothing else."""

    def edit(index: bytearray) -> None:
        for at, new in edits:
            place = at % (len(index) - len(new))
            index[place : place + len(new)] = new

    bundle_path.write_bytes(sound.read_bytes())
    forge(bundle_path, edit)
    assert is_read_or_refused(bundle_path)


def is_read_or_refused(path):
    try:
        read_all(path)
    except BundleError:
        return True
    return True
