"""Bundles made to hurt: the C++ loader refuses them as Python does, and never reads astray.

`inspect` is compiled with AddressSanitizer and UndefinedBehaviorSanitizer, so a byte read outside
the file, an overflow or a leak ends it.
"""

import os
import re
import struct
from pathlib import Path
from random import Random

import pytest

from kernelpack.bundle.format import FIELDS, HEADER, PART, ROWS, SECTION, Kind, Part, Section
from kernelpack.bundle.reader import open_bundle, open_entries
from kernelpack.bundle.signature import signed
from kernelpack.errors import BundleError
from kernelpack.spec.artifact import digest
from tests.bundle import forge
from tests.cpp.compiler import ask, said
from tests.cpp.test_plans import line, planned
from tests.fakes.bundles import entry, write_bundle
from tests.fakes.keys import make_keys
from tests.fakes.variants import NUMBERS as REALS
from tests.fakes.variants import variant
from tests.refusals import ADDRESSES
from tests.refusals import SIZES as CALL

NUMBERS = (0, 1, 4, 8, 5000, 2**31, 2**32 - 8, 2**32 - 1)
LONG = (0, 4, 2**32, 2**61, 2**63, 2**64 - 8, 2**64 - 1)
MUTANTS = 4_000
SIZES = CALL | {"sm_count": 132, "eps": 0.5}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A bundle of a few variants of two targets."""
    made = [
        variant(arch=arch, out=out, numbers=REALS)
        for arch in ("sm_90a", "sm_100a")
        for out in ("bf16", "fp32")
    ]
    return write_bundle(tmp_path_factory.mktemp("sound") / "sound.kpk", made)


def python(path):
    """What Python says of a file, in the order and the words of `inspect read`."""
    try:
        bundle = open_bundle(path)
        told = [bundle.root, str(len(bundle.provenance.release))]
        for known in bundle.variants():
            record = bundle.find(known.id)
            told.append(f"{record.id}={digest(bundle.image(known.id))}")
        bundle.holds_entry("kernel[arch=none]")
    except BundleError as error:
        return said(error)
    return " ".join(told).replace("\n", "\\n")


def copies(folder: Path, sound: Path, edits):
    """One copy of the bundle for each edit, edited."""
    for number, edit in enumerate(edits):
        path = folder / f"{number}.kpk"
        path.write_bytes(sound.read_bytes())
        edit(path)
        yield path


def indexed(edit):
    """An edit of the index, under right digests."""
    return lambda path: forge.forge(path, edit)


def of_records():
    """Every number of the first record of each kind, made one that could hurt."""
    for kind in Kind:
        fields = len(FIELDS[kind].unpack(bytes(FIELDS[kind].size)))
        for field in range(fields - (kind is Kind.CONSTANT)):
            yield from (indexed(forge.poke_record(kind, field, n)) for n in NUMBERS)


def of_rows():
    """Every number of the first and the last row of each table."""
    for section in (
        Section.TARGETS,
        Section.KERNELS,
        Section.PROVENANCE,
        Section.ENTRIES,
        Section.NUMBERS,
    ):
        first = 3 if section is Section.ENTRIES else 0
        fields = len(ROWS[section].unpack(bytes(ROWS[section].size)))
        for field in range(first, fields):
            yield from (indexed(forge.poke_row(section, 0, field, n)) for n in NUMBERS)


def of_sections():
    """Every number of each section's row, and of the index's head."""

    def put(layout, at, value):
        return indexed(lambda index: struct.pack_into(layout, index, at, value))

    for section in Section:
        row = forge.section_row(section)
        yield from (put("<I", row + at, n) for at in (0, 4) for n in NUMBERS)
        yield from (put("<Q", row + at, n) for at in range(8, SECTION.size, 8) for n in LONG)
    yield from (put("<I", at, n) for at in (0, 4) for n in NUMBERS)
    yield from (put("<Q", at, n) for at in (8, 16) for n in LONG)


def of_header():
    """Every number of the header and of each part's row, under a right digest of the header."""

    def put(layout, at, value):
        def edit(data):
            struct.pack_into(layout, data, at, value)

        return lambda path: forge.reseal_header(path, edit)

    yield from (put("<H", at, n) for at in (8, 10) for n in (0, 2, 65535))
    yield from (put("<Q", 16, n) for n in LONG)
    yield from (put("<I", at, n) for at in range(24, 40, 4) for n in NUMBERS)
    for part in Part:
        row = forge.part_row(part)
        yield from (put("<I", row + at, n) for at in (0, 4) for n in NUMBERS)
        yield from (put("<Q", row + at, n) for at in (8, 16) for n in LONG)
    assert PART.size * len(Part) + HEADER.size < 2**10


def cut():
    """Files that are too short, too long, or something else altogether."""
    yield from (
        lambda path, n=n: path.write_bytes(path.read_bytes()[:n]) for n in range(0, 1200, 13)
    )
    yield lambda path: path.write_bytes(path.read_bytes() + b"more")
    for head in (
        b"PK\3\4",
        b"\x7fELF",
        b"{}",
        b"\n <html>",
        b"\0" * 80,
        b"kernel: x",
        b"KPK",
        b"hi",
    ):
        yield lambda path, head=head: path.write_bytes(head)


def answers(inspect, paths):
    """What Python and the loader say of files; places in `records` depend on who reads first."""
    expected, told = map(python, paths), ask(inspect, "read", lines=paths)
    return [
        tuple(re.sub(r"\d+ bytes at \d+ leave", "leave", answer) for answer in pair)
        for pair in zip(expected, told, strict=True)
    ]


@pytest.mark.parametrize("edits", [of_sections, of_header, of_records, of_rows, cut])
def test_refusals_are_pythons(inspect, sound, tmp_path, edits):
    """What Python refuses is refused in the same words, and what it reads is read alike."""
    pairs = answers(inspect, list(copies(tmp_path, sound, edits())))
    assert [pair for pair in pairs if pair[0] != pair[1]] == []


def test_a_signed_bundle(inspect, sound, tmp_path):
    """A signature changes nothing for those who do not ask for one."""
    path = tmp_path / "signed.kpk"
    path.write_bytes(signed(sound.read_bytes(), make_keys(tmp_path)[0]))
    ((expected, told),) = answers(inspect, [path])
    assert (told, told.startswith("error")) == (expected, False)


def launched(path):
    """What a server that calls in Python makes of a file, as `inspect launch` prints it."""
    try:
        variants = open_entries(path).variants("lora_shrink_qkv")
    except BundleError as error:
        return said(error)
    return planned(variants, SIZES, (9, 0), ADDRESSES)


def test_one_verdict(inspect, sound, tmp_path):
    """Both languages take the same mutants, read the same of them, and make the same launch."""
    chance = Random(3)
    edits = ((scrambled, renumbered)[turn % 2](chance) for turn in range(MUTANTS))
    paths = list(forge.forge_all(sound, tmp_path, edits))
    pairs = answers(inspect, paths)
    assert [pair for pair in pairs if pair[0] != pair[1]] == []
    taken = [p for p, (_, told) in zip(paths, pairs, strict=True) if not told.startswith("error")]
    call = line("lora_shrink_qkv", SIZES, (9, 0), ADDRESSES)
    told = ask(inspect, "launch", lines=[f"{path}\t{call}" for path in taken])
    assert list(map(launched, taken)) == told


def test_where_a_target_runs_is_known(inspect, sound, tmp_path):
    """A bundle that lists no capability for a target, or another's, runs where the target does."""
    edits = [forge.poke_row(Section.TARGETS, row, field, 0) for row in (0, 1) for field in (2, 3)]
    paths = list(forge.forge_all(sound, tmp_path, edits))
    call = line("lora_shrink_qkv", SIZES, (9, 0), ADDRESSES)
    told = ask(inspect, "launch", lines=[f"{path}\t{call}" for path in paths])
    assert [launched(sound)] * len(paths) == list(map(launched, paths)) == told


def exchanged(chance: Random, count: int):
    """Two entries in each other's place, in the table and in their kernel's list."""

    def edit(index):
        rows, size = forge.start_of(index, Section.ENTRIES), ROWS[Section.ENTRIES].size
        one, other = chance.sample(range(count), 2)
        at, to = (slice(rows + place * size, rows + (place + 1) * size) for place in (one, other))
        index[at], index[to] = index[to], index[at]
        *_, start, _ = ROWS[Section.KERNELS].unpack_from(
            index, forge.start_of(index, Section.KERNELS)
        )
        start += forge.start_of(index, Section.RECORDS)
        listed = list(struct.unpack_from(f"<{count}I", index, start))
        swap = {one: other, other: one}
        struct.pack_into(f"<{count}I", index, start, *(swap.get(row, row) for row in listed))

    return edit


def test_one_search(inspect, tmp_path):
    """Both languages find the same entries of a table that is not sorted."""
    made = [variant(tile=tile) for tile in range(1, 100)]
    sound, chance = write_bundle(tmp_path / "sound.kpk", made), Random(5)
    edits = [exchanged(chance, len(made)) for _ in range(40)]
    pairs = answers(inspect, list(forge.forge_all(sound, tmp_path, edits)))
    assert [pair for pair in pairs if pair[0] != pair[1]] == []


def flipped(chance: Random):
    """One random byte of the file changed."""

    def edit(path):
        data = bytearray(path.read_bytes())
        data[chance.randrange(len(data))] ^= chance.randrange(1, 256)
        path.write_bytes(data)

    return edit


def scrambled(chance: Random):
    """An edit of a few random bytes."""

    def edit(index):
        for _ in range(chance.randint(1, 4)):
            index[chance.randrange(len(index))] = chance.choice(
                [0, 1, 7, 255, chance.randrange(256)]
            )

    return edit


def renumbered(chance: Random):
    """An edit of a few words: a number near the held one, one that could hurt, another word."""

    def edit(index):
        for _ in range(chance.randint(1, 3)):
            at, other = (4 * chance.randrange(len(index) // 4) for _ in range(2))
            (held,), (found,) = (struct.unpack_from("<I", index, place) for place in (at, other))
            near = held + chance.choice([-8, -1, 1, 8]), held * 2, held // 2
            number = chance.choice([*near, *NUMBERS, chance.randrange(64), found])
            struct.pack_into("<I", index, at, number % 2**32)

    return edit


def test_damage_never_crashes(inspect, sound, tmp_path):
    """Whatever byte changes, a file is read as it was written or refused."""
    chance = Random(3)
    paths = list(copies(tmp_path, sound, [flipped(chance) for _ in range(600)]))
    assert len(paths) == len(ask(inspect, "read", lines=paths))


def test_a_shortened_file_is_an_error(inspect, sound, tmp_path):
    """A file that is cut while it is open gives Python's error, not a signal.

    At which byte depends on what had been read: the first 4096 in C++.
    """
    path = tmp_path / "cut.kpk"
    path.write_bytes(sound.read_bytes())
    bundle = open_bundle(path)
    os.truncate(path, 600)
    with pytest.raises(BundleError) as caught:
        bundle.variants()
    path.write_bytes(sound.read_bytes())
    told = ask(inspect, "shorten", lines=[path])
    cut = re.compile(r"ends before byte \d+")
    assert cut.sub("cut", told[0]) == cut.sub("cut", said(caught.value))


def test_an_error_that_passes_is_not_kept(inspect, tmp_path):
    """What could not be read, variants and the dictionary of images, is read once it can be."""
    path = write_bundle(tmp_path / "cut.kpk", [entry(v, image=image(v)) for v in alike()])
    assert forge.contents_of(path).dictionary
    bundle = open_bundle(path)
    first = bundle.variants()[0].id
    variants, mended, no_image, image_digest = ask(inspect, "shorten", lines=[path])
    assert ["ends before byte" in line for line in (variants, no_image)] == [True, True]
    assert [str(len(bundle)), digest(bundle.image(first))] == [mended, image_digest]


def alike():
    """Enough variants for a dictionary."""
    return [variant(tile=tile) for tile in range(1, 40)]


def image(known):
    """Machine code that has much in common with that of the others."""
    return Random(1).randbytes(2000) + known.id.encode()
