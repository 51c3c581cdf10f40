"""A bundle whose bytes changed on the way: the place is named, nothing damaged is returned."""

import struct
from hashlib import sha256

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelpack.bundle.format import HEADER, MAJOR, MINOR, PART, Part
from kernelpack.bundle.reader import open_bundle
from kernelpack.errors import BundleError
from tests.bundle.forge import part_row, read_all, read_unverified, reseal_header

U16, U32, U64 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<Q")


def put(layout: struct.Struct, at: int, value: int):
    """An edit of one number."""

    def edit(data: bytearray) -> None:
        layout.pack_into(data, at, value)

    return edit


@pytest.mark.parametrize("size", [9, 50, 103, 104, 495, 496, 497, 2000])
def test_truncated(bundle_path, size):
    """A file that is cut anywhere is called truncated."""
    bundle_path.write_bytes(bundle_path.read_bytes()[:size])
    with pytest.raises(BundleError, match="truncated"):
        open_bundle(bundle_path)


def test_longer(bundle_path):
    """Bytes after the end are refused."""
    bundle_path.write_bytes(bundle_path.read_bytes() + b"more")
    with pytest.raises(BundleError, match="bytes after the end"):
        open_bundle(bundle_path)


@pytest.mark.parametrize(
    ("major", "hint"),
    [(MAJOR - 1, "build the bundle again"), (MAJOR + 1, "upgrade kernelpack"), (65535, "upgrade")],
)
def test_another_major_version(bundle_path, major, hint):
    """Another major version is refused, both versions named."""
    reseal_header(bundle_path, put(U16, 8, major))
    what = rf"format {major}\.{MINOR}; this kernelpack reads 1\.x"
    with pytest.raises(BundleError, match=what) as e:
        open_bundle(bundle_path)
    assert hint in e.value.hint


def test_a_newer_minor_version(bundle_path, sound):
    """A newer minor version is read."""
    reseal_header(bundle_path, put(U16, 10, 7))
    assert read_all(sound) == read_all(bundle_path)


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (put(U32, 12, 0), "cannot hold"),
        (put(U32, 12, 2**32 - 1), "cannot hold"),
        (put(U64, 16, 2**64 - 1), "truncated"),
        (put(U32, 24, 2**32 - 1), "cannot hold"),
        (put(U32, 28, 4096), "pages of 4096"),
        (put(U32, 32, 0), "0 a node"),
        (put(U32, part_row(Part.TREE), 1), "is there twice"),
        (put(U32, part_row(Part.TREE), 99), "needs part 99"),
        (put(U32, part_row(Part.SIGNATURE), 99), "no part signature"),
        (put(U64, part_row(Part.TREE) + 8, 1), "overlaps"),
        (put(U64, part_row(Part.TREE) + 8, 496), "overlaps"),
        (put(U64, part_row(Part.TREE) + 8, 2**63), "overlaps|parts that end at"),
        (put(U64, part_row(Part.SIGNATURE) + 16, 2**63), "parts that end at"),
        (put(U64, part_row(Part.IMAGES) + 16, 2**64 - 1), "overlaps"),
        (put(U64, part_row(Part.TREE) + 16, 32), "a tree of 32 bytes"),
        (put(U64, part_row(Part.FRAMES) + 16, 8), "a frame table of 8 bytes"),
        (put(U64, part_row(Part.INDEX) + 16, 0), "a tree of|no head"),
    ],
)
def test_an_absurd_header(bundle_path, edit, what):
    """Sizes, counts and offsets that cannot be are refused, under a digest that is right."""
    end = HEADER.size + PART.size * len(Part)
    reseal_at(bundle_path, edit, end)
    with pytest.raises(BundleError, match=what):
        open_bundle(bundle_path)


def reseal_at(path, edit, end):
    """Edit the header, which keeps its true size for the digest."""
    data = bytearray(path.read_bytes())
    edit(data)
    data[end : end + 32] = sha256(data[:end]).digest()
    path.write_bytes(data)


@pytest.mark.parametrize("part", [p for p in Part if p not in (Part.SIGNATURE, Part.DICTIONARY)])
def test_a_flipped_bit_in_each_part(bundle_path, part):
    """A bit that flips in any part is found."""
    data = bytearray(bundle_path.read_bytes())
    offset, size = struct.unpack_from("<QQ", data, part_row(part) + 8)
    data[offset + size // 2] ^= 4
    bundle_path.write_bytes(data)
    with pytest.raises(BundleError, match=r"(are|is) not what"):
        open_bundle(bundle_path).verify_all()


def test_a_flipped_bit_in_the_padding(bundle_path):
    """Padding that is not zero is found."""
    data = bytearray(bundle_path.read_bytes())
    offset, size = struct.unpack_from("<QQ", data, part_row(Part.DOCUMENTS) + 8)
    data[offset + size] ^= 1
    assert (offset + size) % 8 > 0
    bundle_path.write_bytes(data)
    with pytest.raises(BundleError, match="between two parts, are not zero"):
        open_bundle(bundle_path).verify_all()


def test_the_damaged_page_is_named(bundle_path):
    """The error for a page says which bytes of the index changed."""
    data = bytearray(bundle_path.read_bytes())
    offset, size = struct.unpack_from("<QQ", data, part_row(Part.INDEX) + 8)
    data[offset + size - 1] ^= 1
    bundle_path.write_bytes(data)
    bundle = open_bundle(bundle_path)
    with pytest.raises(BundleError, match=rf"bytes \d+ to {size} of the index"):
        bundle.variants()


def test_an_image_of_a_damaged_bundle(bundle_path, entries):
    """Damage to one image leaves the others loadable."""
    data = bytearray(bundle_path.read_bytes())
    offset, _ = struct.unpack_from("<QQ", data, part_row(Part.IMAGES) + 8)
    data[offset + 12] ^= 0xFF
    bundle_path.write_bytes(data)
    bundle = open_bundle(bundle_path)
    outcomes = [is_loadable(bundle, e.variant.id) for e in entries]
    assert outcomes.count(False) == 1


def is_loadable(bundle, variant_id):
    try:
        return bool(bundle.image(variant_id))
    except BundleError:
        return False


EDITS = st.lists(
    st.tuples(st.sampled_from(["set", "cut", "insert", "swap"]), st.integers(0), st.binary()),
    min_size=1,
    max_size=4,
)


def mutate(data: bytes, edits) -> bytes:
    """The bytes after some edits at random places."""
    for kind, at, new in edits:
        place = at % (len(data) + 1)
        kept = {"set": len(new), "cut": len(new) + 1, "insert": 0, "swap": 16}[kind]
        put_in = {"set": new, "cut": b"", "insert": new, "swap": data[:16]}[kind]
        data = data[:place] + put_in + data[place + kept :]
    return data


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(edits=EDITS)
def test_random_damage(sound, bundle_path, edits):
    """A bundle with random damage reads back equal, or is a BundleError."""
    bundle_path.write_bytes(mutate(sound.read_bytes(), edits))
    assert outcome(read_all, bundle_path) in (read_all(sound), BundleError)


@settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(place=st.integers(496), new=st.binary(min_size=1, max_size=40))
def test_random_damage_behind_the_header(sound, bundle_path, place, new):
    """Nothing that is read lazily from a damaged bundle is wrong: it is equal, or a BundleError."""
    data = bytearray(sound.read_bytes())
    start = 496 + place % (len(data) - 496 - len(new))
    data[start : start + len(new)] = new
    bundle_path.write_bytes(data)
    assert outcome(read_unverified, bundle_path) in (read_unverified(sound), BundleError)


def outcome(read, path):
    try:
        return read(path)
    except BundleError:
        return BundleError
