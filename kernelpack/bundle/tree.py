"""The digests over an index, page by page: build them, and check a page before it is used.

A page costs one hash of 1 KiB and one of 512 bytes a level, once; what was checked is remembered.
"""

from collections.abc import Iterator
from hashlib import sha256

from kernelpack.bundle.format import DAMAGED, DIGEST_BYTES, FAN_OUT, PAGE_BYTES
from kernelpack.errors import BundleError

Buffer = bytes | memoryview
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


def tree_bytes(index_bytes: int) -> int:
    """The size of the tree over an index."""
    return sum(_level_counts(index_bytes)) * DIGEST_BYTES


def _level_counts(index_bytes: int) -> Iterator[int]:
    """Digests of each level from the pages up, without the root."""
    count = -(-index_bytes // PAGE_BYTES)
    while count > 1:
        yield count
        count = -(-count // FAN_OUT)


def _page_digest(page: Buffer) -> bytes:
    return sha256(b"\0" + page).digest()


def _node_digest(node: Buffer) -> bytes:
    return sha256(b"\1" + node).digest()


class CheckedIndex:
    """The bytes of an index; none is returned before its page is checked against the root.

    Args:
        index: the bytes of the index part.
        tree: the bytes of the tree part, of `tree_bytes(len(index))`.
        root: the digest that the pages must lead to.
        where: the file, for messages.

    """

    def __init__(self, index: memoryview, tree: memoryview, root: bytes, where: str) -> None:
        self._index, self._tree, self._root, self._where = index, tree, root, where
        self._levels = tuple(_level_counts(len(index)))
        self._checked = bytearray(-(-len(index) // PAGE_BYTES))
        self._nodes: set[int] = set()

    def __len__(self) -> int:
        return len(self._index)

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of the index, after their pages are checked; the range must lie inside.

        Raises:
            BundleError: a page is not what the root says.

        """
        for page in range(offset // PAGE_BYTES, -(-(offset + size) // PAGE_BYTES)):
            if not self._checked[page]:
                self._check(page)
        return bytes(self._index[offset : offset + size])

    def peek(self, offset: int, size: int) -> memoryview:
        """Bytes that were not checked: only to guess where to look; the range must lie inside."""
        return self._index[offset : offset + size]

    def _check(self, page: int) -> None:
        """Follow a page's digest up, to the root or to a node that was followed before."""
        at = page * PAGE_BYTES
        digest = _page_digest(self._index[at : at + PAGE_BYTES])
        start, place, path = 0, page, []
        for count in self._levels:
            first = place // FAN_OUT * FAN_OUT
            begin = (start + first) * DIGEST_BYTES
            end = min(begin + NODE_BYTES, (start + count) * DIGEST_BYTES)
            mine = (start + place) * DIGEST_BYTES
            if self._tree[mine : mine + DIGEST_BYTES] != digest:
                self._refuse(page)
            if begin in self._nodes:
                break
            path.append(begin)
            digest = _node_digest(self._tree[begin:end])
            start, place = start + count, place // FAN_OUT
        else:
            if digest != self._root:
                self._refuse(page)
        self._nodes.update(path)
        self._checked[page] = 1

    def _refuse(self, page: int) -> None:
        end = min((page + 1) * PAGE_BYTES, len(self._index))
        raise BundleError(
            f"bytes {page * PAGE_BYTES} to {end} of the index are not what the root says",
            where=self._where,
            hint=DAMAGED,
        )
