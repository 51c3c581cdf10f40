"""Bytes with a state each: red zone, allocated but never written, or written.

Fresh bytes are 0xFF: a NaN as f32, f16, bf16, e4m3, e5m2 and ue8m0, and -1 as an integer, so that
a value that was never written shows in every result. The memory looks at the state on each access
and calls `on_bad` where it is wrong; what that means is for the checks to say.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.events import Unit
from kernelpack.emulator.faults import EmulationError, Fault

NOWHERE = 1 << 62
"""Set in an offset that is in no memory; the bits below it say what was asked for."""
OUTSIDE, FRESH, WRITTEN = 0, 1, 3
POISON = 0xFF
RED_ZONE_BYTES = 512
"""Bytes kept free on each side of every allocation."""

GLOBAL_BASE = 0x7000_0000_0000
Bytes: TypeAlias = NDArray[np.uint8]
Offsets: TypeAlias = NDArray[Any]
Lanes: TypeAlias = NDArray[Any]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """An access that cannot be right: `bounds`, `uninitialised` or `misaligned`.

    `offset` is the first bad one in bytes, `size` what is accessed there at once. `lane` is who did
    it; None of a copy, whose bytes are nobody's.
    """

    what: str
    offset: int
    size: int
    write: bool
    lane: int | None = None


OnBad: TypeAlias = Callable[["Memory", Bad], None]

_TYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_SHIFTS = {size: np.array(power, np.uint64) for power, size in enumerate(_TYPES)}
"""Log2 by size; arrays, for numpy takes twice as long over a scalar."""
_ALL_WRITTEN = {size: int.from_bytes(bytes([WRITTEN] * size), "little") for size in _TYPES}


_INSIDE = {
    size: np.array(int.from_bytes(bytes([FRESH] * size), "little"), kind)
    for size, kind in _TYPES.items()
}
"""The bit that `FRESH` and `WRITTEN` have and `OUTSIDE` has not, for bytes that go together."""


def _ignore(_memory: "Memory", _bad: Bad) -> None:
    """Nobody looks."""


def _zeros(size: int, kind: str) -> Bytes:
    try:
        return np.zeros(size, np.uint8)
    except (MemoryError, ValueError) as error:
        raise EmulationError(
            f"{size} bytes of {kind} memory do not fit this machine",
            hint="each byte takes another one for its state",
        ) from error


class Memory:
    """A flat memory of `size` bytes, all of them outside any allocation at first.

    Raises:
        EmulationError: this machine has no room for it.
    """

    def __init__(
        self,
        size: int,
        *,
        name: str,
        kind: str,
        base: int = 0,
        buffer: Bytes | None = None,
        on_bad: OnBad = _ignore,
        allocations: dict[int, tuple[int, str]] | None = None,
    ) -> None:
        size = -(-size // 16) * 16
        self.base, self.size = base, size
        self.bytes: Bytes = _zeros(size, kind) if buffer is None else buffer[:size]
        self.state: Bytes = _zeros(size, kind)
        self.views = {n: self.bytes.view(kind_) for n, kind_ in _TYPES.items()}
        self.states = {n: self.state.view(kind_) for n, kind_ in _TYPES.items()}
        self.unit = Unit(name, kind, size // 4)
        self._on_bad = on_bad
        self.allocations = {} if allocations is None else allocations
        """The arrays here: offset → size and name."""

    def describe(self, offset: int) -> str:
        """The allocation nearest to an offset, in words."""
        near = [
            (max(start - offset, offset - start - size + 1), start, size, name)
            for start, (size, name) in self.allocations.items()
        ]
        distance, start, size, name = min(near, default=(self.size, 0, 0, ""))
        if distance > RED_ZONE_BYTES:
            return "no allocation is near"
        label = name or hex(self.base + start)
        if offset >= start + size:
            return f"{offset - start - size} bytes past the end of `{label}` of {size} bytes"
        if offset < start:
            return f"{start - offset} bytes before `{label}` of {size} bytes"
        return f"{offset - start} bytes into `{label}` of {size} bytes"

    def open(self, start: int, size: int, *, written: bool = False, poison: bool = True) -> None:
        """Make `size` bytes from offset `start` part of an allocation, filled with poison."""
        if poison:
            self.bytes[start : start + size] = POISON
        self.state[start : start + size] = WRITTEN if written else FRESH

    def load(
        self, offsets: Offsets, size: int, count: int = 1, lanes: Mask | None = None
    ) -> list[Lanes]:
        """Read `count` values of 1, 2, 4 or 8 bytes at each offset; a bad lane reads poison.

        Each offset must be a multiple of all its values together (PTX ISA 6.4.1). `lanes` are
        those of the warp that the offsets are of, all of them where it is None.
        """
        index = self._index(offsets, size, count)
        if index is None:
            return self._load_good(offsets, size, count, _numbers(offsets, lanes))
        if np.count_nonzero(self.states[size][index] != _ALL_WRITTEN[size]):
            self._report(offsets, size, count, _numbers(offsets, lanes), write=False)
        found = self.views[size][index]
        return [found] if count == 1 else list(found)

    def store(
        self, offsets: Offsets, size: int, values: list[Lanes], lanes: Mask | None = None
    ) -> None:
        """Write values at each offset; of lanes with the same offset the last one stays."""
        index = self._index(offsets, size, len(values))
        if index is None or not self._opened(index, size):
            self._store_good(offsets, size, values, _numbers(offsets, lanes))
            return
        self.views[size][index] = values[0] if len(values) == 1 else values

    def holds(self, offsets: Offsets, values: list[Lanes]) -> bool:
        """Whether a store of these values would change nothing."""
        size = values[0].itemsize
        index = self._index(offsets, size, len(values))
        return index is not None and np.array_equal(
            self.views[size][index], values[0] if len(values) == 1 else values
        )

    def _opened(self, index: Offsets, size: int) -> bool:
        """Whether values are all inside allocations; if so, they count as written from now on."""
        states = self.states[size]
        found = states[index]
        if np.count_nonzero(found != _ALL_WRITTEN[size]):
            if np.count_nonzero(found & _INSIDE[size] != _INSIDE[size]):
                return False
            states[index] = _ALL_WRITTEN[size]
        return True

    def _index(self, offsets: Offsets, size: int, count: int = 1) -> Offsets | None:
        """Offsets in units of `size`, a row for each of `count` consecutive ones.

        None where a lane is misaligned or outside the memory. The bits of all lanes together show
        both, mostly: they are at least as large as the largest.
        """
        bits, span = int(np.bitwise_or.reduce(offsets)), size * count
        last = self.size - span
        if bits & (span - 1) or (bits > last and int(offsets.max(initial=0)) > last):
            return None
        index: Offsets = (offsets >> _SHIFTS[size]).view(np.intp)
        return index if count == 1 else index + np.arange(count)[:, None]

    def _load_good(self, offsets: Offsets, size: int, count: int, lanes: Lanes) -> list[Lanes]:
        """Read at the offsets that are right; poison at the others."""
        good = self.good(offsets, size * count, lanes, write=False)
        kind = _TYPES[size]
        out = [np.full(len(offsets), kind(2 ** (8 * size) - 1), kind) for _ in range(count)]
        if good.any():
            self._report(offsets[good], size, count, lanes[good], write=False)
            for value, index in zip(out, _steps(offsets[good], size, count), strict=True):
                value[good] = self.views[size][index]
        return out

    def _store_good(self, offsets: Offsets, size: int, values: list[Lanes], lanes: Lanes) -> None:
        """Write at the offsets that are right and inside an allocation, written before or not."""
        good = self.good(offsets, size * len(values), lanes, write=True)
        if not good.any():
            return
        offsets, lanes = offsets[good], lanes[good]
        inside = self._report(offsets, size, len(values), lanes, write=True)
        steps = _steps(offsets, size, len(values))
        for index, value, keep in zip(steps, values, inside, strict=True):
            self.states[size][index[keep]] = _ALL_WRITTEN[size]
            self.views[size][index[keep]] = value[good][keep]

    def good(self, offsets: Offsets, size: int, lanes: Lanes, *, write: bool) -> NDArray[np.bool_]:
        """Lanes that are aligned and inside the memory; the first other one is reported."""
        misaligned = (offsets & np.uint64(size - 1)) != 0
        outside = offsets > np.uint64(self.size - size)
        for what, bad in (("bounds", outside), ("misaligned", misaligned & ~outside)):
            self._tell(what, bad, offsets, lanes, size=size, write=write)
        return np.asarray(~(misaligned | outside))

    def _report(
        self, offsets: Offsets, size: int, count: int, lanes: Lanes, *, write: bool
    ) -> list[NDArray[np.bool_]]:
        """Report values outside allocations and, for a read, never written; which are inside."""
        inside = []
        for step in _steps(offsets, size, count):
            at = step * size
            cells = self.state[at[:, None] + np.arange(size)]
            outside = (cells == OUTSIDE).any(1)
            fresh = (cells == FRESH).any(1) & ~outside
            self._tell("bounds", outside, at, lanes, size=size, write=write)
            if not write:
                self._tell("uninitialised", fresh, at, lanes, size=size, write=write)
            inside.append(~outside)
        return inside

    def _tell(
        self,
        what: str,
        bad: NDArray[np.bool_],
        offsets: Offsets,
        lanes: Lanes,
        *,
        size: int,
        write: bool,
    ) -> None:
        """Report the first lane with which something is wrong, if there is one."""
        if bad.any():
            first = int(np.argmax(bad))
            offset, lane = int(offsets[first]), int(lanes[first])
            self._on_bad(self, Bad(what=what, offset=offset, size=size, write=write, lane=lane))

    def gather_words(self, words: NDArray[np.intp]) -> Bytes | None:
        """Read 8-byte words inside the memory by number; None where one is not written whole."""
        if np.count_nonzero(self.states[8][words] != _ALL_WRITTEN[8]):
            return None
        found: Bytes = self.views[8][words].view(np.uint8)
        return found

    def gather_cells(self, cells: NDArray[np.intp]) -> Bytes | None:
        """Read 4-byte cells by number; None where one is outside or not written whole."""
        if not self._holds(cells) or np.count_nonzero(self.states[4][cells] != _ALL_WRITTEN[4]):
            return None
        found: Bytes = self.views[4][cells].view(np.uint8)
        return found

    def scatter_cells(self, cells: NDArray[np.intp], values: Bytes) -> bool:
        """Write 4-byte cells; False, and nothing done, where one is outside an allocation."""
        if not self._holds(cells):
            return False
        if not self._opened(cells, 4):
            return False
        self.views[4][cells] = values.view(np.uint32)
        return True

    def _holds(self, cells: NDArray[np.intp]) -> bool:
        return int(cells.min()) >= 0 and int(cells.max()) < self.size // 4

    def gather(self, offsets: NDArray[np.intp]) -> Bytes:
        """Read single bytes, any shape of `offsets`; for copies and matrix operands."""
        flat = self._inside(offsets, write=False)
        state = self.state[flat]
        if np.count_nonzero(state != WRITTEN):
            self._report_bytes(flat, state, write=False)
        return self.bytes[flat]

    def scatter(self, offsets: NDArray[np.intp], values: Bytes) -> None:
        """Write single bytes."""
        flat = self._inside(offsets, write=True)
        state = self.state[flat]
        if np.count_nonzero(state == OUTSIDE):
            self._report_bytes(flat, state, write=True)
            keep = state != OUTSIDE
            flat, values = flat[keep], values[keep]
        self.bytes[flat] = values
        self.state[flat] = WRITTEN

    def _inside(self, offsets: NDArray[np.intp], *, write: bool) -> NDArray[np.intp]:
        """The offsets, those outside the memory turned to byte 0, a red zone."""
        if offsets.size == 0 or (int(offsets.min()) >= 0 and int(offsets.max()) < self.size):
            return offsets
        outside = (offsets < 0) | (offsets >= self.size)
        first = int(offsets[outside].flat[0])
        self._on_bad(self, Bad(what="bounds", offset=first, size=1, write=write))
        return np.where(outside, 0, offsets)

    def _report_bytes(self, offsets: NDArray[np.intp], state: Bytes, *, write: bool) -> None:
        for what, value in (("bounds", OUTSIDE), ("uninitialised", FRESH)):
            bad = state == value
            if bad.any() and not (write and value == FRESH):
                first = int(offsets.flat[int(np.argmax(bad))])
                self._on_bad(self, Bad(what=what, offset=first, size=1, write=write))


def cells_of(offsets: NDArray[np.intp]) -> tuple[NDArray[np.intp], bool]:
    """The 4-byte cells of byte offsets, each once, and whether the offsets are all their bytes.

    Units move bytes in runs, so the first and last of four speak for the two between.
    """
    flat = offsets.reshape(-1)
    if flat.size and flat.size % 4 == 0:
        first, last = flat[::4], flat[3::4]
        if not np.count_nonzero((first & 3) | (last ^ first ^ 3)):
            return first >> 2, True
    return np.unique(flat >> 2), False


def _numbers(offsets: Offsets, lanes: Mask | None) -> Lanes:
    """The lanes that offsets are of."""
    return np.arange(len(offsets)) if lanes is None else np.flatnonzero(lanes)


def _steps(offsets: Offsets, size: int, count: int) -> Iterator[NDArray[np.intp]]:
    """Where each of `count` consecutive values is, in units of their size."""
    first = (offsets >> _SHIFTS[size]).astype(np.intp)
    return (first + k for k in range(count))


class GlobalMemory(Memory):
    """Device memory: allocations at 256-byte boundaries, red zones between them.

    Args:
        capacity: bytes of address space; the host commits only what is touched.
        buffer: where the bytes live, e.g. a mapping shared with a host program.
    """

    def __init__(self, capacity: int = 1 << 28, *, buffer: Bytes | None = None) -> None:
        super().__init__(capacity, name="global", kind="global", base=GLOBAL_BASE, buffer=buffer)
        self.end = 4096
        self.first = np.array(self.base, np.uint64)
        """The base as lanes are computed with."""

    def report_to(self, on_bad: OnBad) -> None:
        """Call `on_bad` from now on: the memory serves another run."""
        self._on_bad = on_bad

    def allocate(self, size: int, name: str = "", *, alignment: int = 256) -> int:
        """A fresh, poisoned allocation; its address.

        Raises:
            EmulationError: the memory is full.
        """
        address = self._reserve(size, name, alignment)
        self.open(address - self.base, size)
        return address

    def _reserve(self, size: int, name: str, alignment: int) -> int:
        """Room for an allocation, which is not open yet; its address."""
        start = -(-(self.end + RED_ZONE_BYTES) // alignment) * alignment
        if size < 0 or start + size + RED_ZONE_BYTES > self.size:
            raise EmulationError(
                f"allocation of {size} bytes does not fit",
                hint=f"the emulated memory has {self.size} bytes, {self.end} are in use",
            )
        self.end = start + size
        self.allocations[start] = (size, name)
        return self.base + start

    def forget(self, address: int, where: str) -> None:
        """An allocation ends: its bytes are outside from now on.

        Raises:
            Fault: none begins there.
        """
        start = address - self.base
        if start not in self.allocations:
            raise Fault(f"free of {address:#x}, where no allocation begins", where=where)
        size, _ = self.allocations.pop(start)
        self.bytes[start : start + size] = POISON
        self.state[start : start + size] = OUTSIDE

    def put(self, array: NDArray[Any], name: str = "") -> int:
        """A new allocation that holds a copy of the array's bytes; its address."""
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        address = self.allocate(raw.size, name)
        self.write(address, raw)
        return address

    def zeros(self, size: int, name: str = "") -> int:
        """A new allocation of zeros that count as written; its address.

        The host commits a page of them when it is touched.
        """
        address = self._reserve(size, name, 256)
        self.open(address - self.base, size, written=True, poison=False)
        return address

    def put_unwritten(self, array: NDArray[Any], name: str = "") -> int:
        """As `put`, but whoever reads the bytes reads what was never written."""
        address = self.put(array, name)
        self.open(address - self.base, array.nbytes, poison=False)
        return address

    def write(self, address: int, raw: Bytes) -> None:
        """Copy bytes in, as the host does."""
        start = address - self.base
        self.bytes[start : start + raw.size] = raw
        self.state[start : start + raw.size] = WRITTEN

    def write_bytes(self, address: int, raw: bytes) -> None:
        """Copy bytes in, as the host does."""
        self.write(address, np.frombuffer(raw, np.uint8))

    def read(self, address: int, size: int) -> Bytes:
        """A copy of `size` bytes, as the host does."""
        start = address - self.base
        return self.bytes[start : start + size].copy()
