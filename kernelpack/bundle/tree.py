"""The digests over an index, page by page: build them, and check a page before it is used.

A page costs one hash of 1 KiB and one of 512 bytes a level, once; what was checked is remembered.
"""

from hashlib import sha256

from kernelpack.bundle.file import BundleFile
from kernelpack.bundle.format import DIGEST_BYTES, FAN_OUT, PAGE_BYTES
from kernelpack.bundle.header import Extent
from kernelpack.errors import BundleError

NODE_BYTES = FAN_OUT * DIGEST_BYTES


def build(index: bytes) -> tuple[bytes, bytes]:
    """The tree over an index without its root, and the root."""
    level = [_page_digest(index[at : at + PAGE_BYTES]) for at in range(0, len(index), PAGE_BYTES)]
    tree: list[bytes] = []
    while len(level) > 1:
        tree += level
        nodes = (b"".join(level[at : at + FAN_OUT]) for at in range(0, len(level), FAN_OUT))
        level = [_node_digest(node) for node in nodes]
    return b"".join(tree), level[0]


def _levels(index_bytes: int) -> list[tuple[int, int]]:
    """Where each level of a tree starts and ends, from the pages up, without the root; bytes."""
    levels, start, count = [], 0, -(-index_bytes // PAGE_BYTES)
    while count > 1:
        levels.append((start, start + count * DIGEST_BYTES))
        start += count * DIGEST_BYTES
        count = -(-count // FAN_OUT)
    return levels


def _page_digest(page: bytes) -> bytes:
    return sha256(b"\0" + page).digest()


def _node_digest(node: bytes) -> bytes:
    return sha256(b"\1" + node).digest()


class CheckedIndex:
    """The bytes of an index; none is returned before its page is checked against the root.

    Checked pages are kept, so a file that changes later does not change what was read.

    Args:
        file: the file.
        index: where the index lies.
        tree: where its tree lies.
        root: the digest that the pages must lead to.

    Raises:
        BundleError: the tree has not the size that belongs to the index.

    """

    def __init__(self, file: BundleFile, index: Extent, tree: Extent, root: bytes) -> None:
        self._file, self._start, self._size = file, index.offset, index.size
        self._tree, self._root = tree.offset, root
        self._levels = _levels(index.size)
        self._pages: dict[int, bytes] = {}
        self._nodes: dict[int, bytes] = {}
        if tree.size != (self._levels[-1][1] if self._levels else 0):
            raise file.refuse(f"a tree of {tree.size} bytes over an index of {index.size}")

    def __len__(self) -> int:
        return self._size

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of the index, after their pages are checked; the range must lie inside.

        Raises:
            BundleError: a page is not what the root says.

        """
        first, at = divmod(offset, PAGE_BYTES)
        if at + size <= PAGE_BYTES:
            return self._page(first)[at : at + size] if size else b""
        last = (offset + size - 1) // PAGE_BYTES
        return b"".join(map(self._page, range(first, last + 1)))[at : at + size]

    def _page(self, number: int) -> bytes:
        return self._pages.get(number) or self._check(number)

    def peek(self, offset: int, size: int) -> bytes:
        """Bytes that were not checked: only to guess where to look; the range must lie inside."""
        return self._file.read(self._start + offset, size)

    def _check(self, number: int) -> bytes:
        """Read a page; follow its digest up, to the root or to a node that was followed before."""
        at = number * PAGE_BYTES
        page = self._file.read(self._start + at, min(PAGE_BYTES, self._size - at))
        digest, place = _page_digest(page), number
        followed: dict[int, bytes] = {}
        for start, end in self._levels:
            place, child = divmod(place, FAN_OUT)
            at = start + place * NODE_BYTES
            known = self._nodes.get(at)
            node = known or self._file.read(self._tree + at, min(NODE_BYTES, end - at))
            if node[child * DIGEST_BYTES : (child + 1) * DIGEST_BYTES] != digest:
                raise self._refusal(number)
            if known:
                break
            followed[at] = node
            digest = _node_digest(node)
        else:
            if digest != self._root:
                raise self._refusal(number)
        self._nodes.update(followed)
        self._pages[number] = page
        return page

    def _refusal(self, number: int) -> BundleError:
        start, end = number * PAGE_BYTES, min((number + 1) * PAGE_BYTES, self._size)
        return self._file.refuse(f"bytes {start} to {end} of the index are not what the root says")
