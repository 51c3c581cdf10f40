"""`kernelpack merge`, and `build --shard`."""

import json
import re

import pytest

from kernelpack.bundle.reader import twin_of


@pytest.fixture
def parts(kernelpack, project, tmp_path):
    """Two shards of the small project."""
    made = [tmp_path / f"{number}.kpk" for number in (1, 2)]
    for number, path in enumerate(made, 1):
        assert kernelpack("build", "--shard", f"{number}/2", "-o", path).code == 0
    return made


def test_the_whole(kernelpack, parts, tmp_path):
    """The merged files are those of a build of everything."""
    whole, merged = tmp_path / "whole.kpk", tmp_path / "merged.kpk"
    kernelpack("build", "-o", whole)
    said = kernelpack("merge", *parts[::-1], "-o", merged)
    assert f"\nwrote {merged}: 3 entries of 2 bundles (" in said.err
    assert merged.read_bytes() == whole.read_bytes()
    assert twin_of(merged).read_bytes() == twin_of(whole).read_bytes()


def test_a_missing_shard(kernelpack, parts, tmp_path):
    """Half a build is refused, and the hint says what would be right."""
    said = kernelpack("merge", parts[0], "-o", tmp_path / "x.kpk")
    assert said.code == 1
    assert "shard 2 of the same build is missing" in said.err
    assert "hint: give every shard" in said.err


def test_a_shard_twice(kernelpack, parts, tmp_path):
    """A file that is given twice is named, whatever is missing then."""
    said = kernelpack("merge", parts[0], parts[0], "-o", tmp_path / "x.kpk")
    assert (said.code, f"error: {parts[0]}: is given twice" in said.err) == (1, True)
    assert "packing" not in said.err


def test_a_copy_of_a_shard(kernelpack, parts, tmp_path):
    """A shard that comes in two files is named with both."""
    copy = tmp_path / "copy.kpk"
    copy.write_bytes(parts[0].read_bytes())
    said = kernelpack("merge", parts[0], copy, "-o", tmp_path / "x.kpk")
    assert f"error: {copy}: this is shard 1/2 of " in said.err
    assert f", and so is {parts[0]}" in said.err


def test_nothing_else_is_overwritten(kernelpack, parts, tmp_path):
    """An output that is not a bundle stays."""
    mine = tmp_path / "mine"
    mine.write_text("mine")
    assert "is not a bundle" in kernelpack("merge", *parts, "-o", mine).err
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "a/b", "1/2 of 0123456789abcdef"])
def test_no_shard(kernelpack, project, text):
    """A shard is I/N, counted from 1."""
    said = kernelpack("build", "--shard", text)
    assert (said.code, f"`{text}` is no I/N with 1 <= I <= N" in said.err) == (2, True)


def test_info_names_the_shard(kernelpack, parts):
    """Whoever holds a shard can see that it is one."""
    assert re.search(r"^shard +1/2 of ", kernelpack("info", parts[0]).out, re.MULTILINE)


def test_json(kernelpack, parts, tmp_path):
    """What was made of what, for programs."""
    merged = tmp_path / "merged.kpk"
    told = json.loads(kernelpack("merge", *parts, "-o", merged, "--json").out)
    size = merged.stat().st_size
    of = [str(path) for path in parts]
    assert told == {"bundle": str(merged), "of": of, "entries": 3, "bytes": size}
