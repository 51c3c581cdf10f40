"""Random caches, and the Python model of where their rows lie."""

from dataclasses import dataclass

import numpy as np

from kernelpack.kernels.kv_operand.storage import Storage
from kernelpack.kv import Continuous, Padded, Paged, Ragged
from kernelpack.ops.arrays import host_view

Random = np.random.Generator


@dataclass(frozen=True, eq=False)
class Cache:
    """A storage of random bytes, with whose they are.

    Attributes:
        storage: where its rows lie.
        memory: the whole array's bytes, of all layers.
        rows: virtual rows as bytes [num_kv_rows, row bytes].
        table: [sequences, pages], or of slots [sequences]; offsets [sequences + 1] of ragged rows.

    """

    storage: Storage
    memory: np.ndarray
    table: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """Virtual rows, each as bytes."""
        storage, start = self.storage, self.storage.offset_bytes
        size = storage.num_kv_rows * storage.row_bytes
        return self.memory[start : start + size].reshape(storage.num_kv_rows, storage.row_bytes)

    def row_idx(self, b: int, t: int) -> int:
        """The virtual row of token t of sequence b."""
        storage, page = self.storage, self.storage.page
        match storage.kind:
            case "Paged":
                return int(self.table[b, t // page]) * storage.block_stride + t % page
            case "Continuous":
                return int(self.table[b]) * storage.block_stride + t
        return int(self.table[b]) + t  # the first row of each sequence

    def populate(self, rows: int, run: int, b: int, row0: int, end: int) -> list[int]:
        """First row of each run of a tile; past the end the number of rows there are."""
        starts = range(row0, row0 + rows, run)
        return [self.row_idx(b, t) if t < end else self.storage.num_kv_rows for t in starts]


def _bytes(random: Random, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    raw = random.integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8)
    return raw.view(dtype).reshape(shape)


def paged(
    random: Random, *, page: int, row: tuple[int, int], dtype: str = "u1", pages: int = 4
) -> Cache:
    """Three sequences in a cache of several layers and halves; the table has ids past the end."""
    layers, halves, blocks = (int(n) for n in random.integers(1, 4, 3))
    halves, blocks = min(halves, 2), blocks + 3 * pages
    array = _bytes(random, (blocks, halves, layers, page, *row), dtype)
    layer, half = int(random.integers(layers)), int(random.integers(halves))
    table = random.permutation(blocks)[: 3 * pages].reshape(3, pages).astype(np.uint32)
    storage = Paged(array, layer=layer, half=half).storage(host_view(array, "blocks"))
    return Cache(storage, array.view(np.uint8).ravel(), table)


def continuous(random: Random, *, length: int, row: tuple[int, int], dtype: str = "u1") -> Cache:
    """Three sequences in the slots of a cache of several layers."""
    layers, slots = (int(n) for n in random.integers(1, 4, 2))
    slots += 3
    array = _bytes(random, (slots, 2, layers, length, *row), dtype)
    layer, half = int(random.integers(layers)), int(random.integers(2))
    table = random.permutation(slots)[:3].astype(np.uint32)
    storage = Continuous(array, layer=layer, half=half).storage(host_view(array, "slots"))
    return Cache(storage, array.view(np.uint8).ravel(), table)


def padded(random: Random, *, length: int, row: tuple[int, int], dtype: str = "u1") -> Cache:
    """Three sequences of one length."""
    array = _bytes(random, (3, length, *row), dtype)
    storage = Padded(array).storage(host_view(array, "rows"))
    return Cache(storage, array.view(np.uint8).ravel(), np.arange(3) * length)


def ragged(random: Random, *, total: int, row: tuple[int, int], dtype: str = "u1") -> Cache:
    """Three sequences of some lengths, the second of none."""
    array = _bytes(random, (total, *row), dtype)
    cut = int(random.integers(1, total))
    storage = Ragged(array).storage(host_view(array, "rows"))
    return Cache(storage, array.view(np.uint8).ravel(), np.array([0, cut, cut, total], np.uint32))
