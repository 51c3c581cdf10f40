"""Digests by pages: one changed bit anywhere is found when its page is read."""

import pytest

from kernelpack.bundle.file import BundleFile
from kernelpack.bundle.format import FAN_OUT, MAGIC, PAGE_BYTES
from kernelpack.bundle.header import Extent
from kernelpack.bundle.tree import CheckedIndex, build
from kernelpack.errors import BundleError

SIZES = (1, PAGE_BYTES - 1, PAGE_BYTES, PAGE_BYTES + 1, 16 * PAGE_BYTES, 17 * PAGE_BYTES + 5)
DEEP = (FAN_OUT**2 + 3) * PAGE_BYTES


def checked(folder, index, tree, root):
    path = folder / "x"
    path.write_bytes(MAGIC + index + tree)
    parts = Extent(8, len(index), b""), Extent(8 + len(index), len(tree), b"")
    return CheckedIndex(BundleFile(path), *parts, root)


def pattern(size):
    return bytes(at * 7 % 251 for at in range(size))


@pytest.mark.parametrize("size", [*SIZES, DEEP])
def test_what_is_read_is_what_was_written(tmp_path, size):
    """A whole index of any number of levels is read back."""
    index = pattern(size)
    assert index == checked(tmp_path, index, *build(index)).read(0, size)


@pytest.mark.parametrize(
    ("offset", "size"),
    [(0, 0), (5, 3), (1020, 8), (1024, 1024), (1023, 2050), (16_389, 24), (17_413, 0)],
)
def test_ranges(tmp_path, offset, size):
    """A range within a page, over a border, or empty at the end is read."""
    index = pattern(17 * PAGE_BYTES + 5)
    read = checked(tmp_path, index, *build(index)).read(offset, size)
    assert index[offset : offset + size] == read


@pytest.mark.parametrize("place", [0, PAGE_BYTES, 100 * PAGE_BYTES + 9, DEEP - 1])
def test_a_flipped_bit_of_the_index(tmp_path, place):
    """A page with a changed bit is refused; the pages beside it are read."""
    index = bytearray(pattern(DEEP))
    tree, root = build(bytes(index))
    index[place] ^= 1
    opened = checked(tmp_path, bytes(index), tree, root)
    opened.read(50 * PAGE_BYTES, 10)
    with pytest.raises(BundleError, match="are not what the root says"):
        opened.read(place, 1)


@pytest.mark.parametrize("level_start", [0, (FAN_OUT**2 + 3) * 32])
def test_a_flipped_bit_of_the_tree(tmp_path, level_start):
    """A node with a changed bit is refused."""
    index = pattern(DEEP)
    tree, root = build(index)
    tree = bytearray(tree)
    tree[level_start] ^= 1
    opened = checked(tmp_path, index, bytes(tree), root)
    with pytest.raises(BundleError, match="bytes 0 to 1024 of the index"):
        opened.read(0, 1)


def test_another_root(tmp_path):
    """A sound tree under another root is refused."""
    index = pattern(DEEP)
    tree, _ = build(index)
    with pytest.raises(BundleError, match="are not what the root says"):
        checked(tmp_path, index, tree, bytes(32)).read(0, 1)


def test_a_page_is_not_a_node():
    """Bytes that are digests hash otherwise as a page than as a node."""
    index = pattern(2 * PAGE_BYTES)
    tree, root = build(index)
    assert root != build(tree)[1]


def test_checked_pages_are_kept(tmp_path):
    """A page that was checked does not change with the file."""
    index = pattern(100)
    opened = checked(tmp_path, index, *build(index))
    opened.read(0, 1)
    (tmp_path / "x").write_bytes(MAGIC + bytes(len(index)))
    assert index == opened.read(0, 100)
