"""Device memory that a host program and the emulator share: a file both map, the program at `base`.

The file has no name in any folder, so that nothing is left of it however the emulator ends.

The bytes are shared; which of them were allocated and written is known here alone, so the stand-in
announces every copy of the host's before it makes it.
"""

import mmap
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from kernelpack.emulator.faults import EmulationError
from kernelpack.emulator.machine.memory import (
    OUTSIDE,
    POISON,
    RED_ZONE_BYTES,
    WRITTEN,
    GlobalMemory,
)
from kernelpack.errors import KernelpackError, ProblemError

PAGE_BYTES = 4096
ALIGNMENT_BYTES = 256


class Arena:
    """The memory of one program. Addresses are the program's own."""

    def __init__(self, path: Path, size: int, memory: GlobalMemory) -> None:
        self.path, self.size, self.memory = path, size, memory
        self._freed: deque[tuple[int, int]] = deque()

    @property
    def base(self) -> int:
        """The address at which the program maps the file."""
        return self.memory.base

    def allocate(self, size: int, *, managed: bool = False) -> int:
        """Fresh, poisoned memory; managed memory counts as written, for the host writes unseen.

        Raises:
            EmulationError: the memory is full.

        """
        if managed:
            return self._pages(size)
        try:
            return self.memory.allocate(size)
        except EmulationError:
            return self._reuse(size, ALIGNMENT_BYTES)

    def _pages(self, size: int) -> int:
        """Memory that the host may touch, on pages of its own: the others are closed to it."""
        whole = -(-size // PAGE_BYTES) * PAGE_BYTES
        try:
            address = self.memory.allocate(whole, alignment=PAGE_BYTES)
        except EmulationError:
            address = self._reuse(whole, PAGE_BYTES)
        start = address - self.base
        self.memory.open(start, size, written=True, poison=False)
        self.memory.state[start + size : start + whole] = OUTSIDE
        self.memory.allocations[start] = (size, "")
        return address

    def release(self, address: int) -> None:
        """Make an allocation a red zone, given out again when there is nothing else, oldest first.

        Raises:
            ProblemError: no allocation begins there.

        """
        start = address - self.base
        if start not in self.memory.allocations:
            raise ProblemError(f"no allocation begins at {address:#x}, or it is free already")
        size, _ = self.memory.allocations.pop(start)
        self.memory.bytes[start : start + size] = POISON
        self.memory.state[start : start + size] = OUTSIDE
        self._freed.append((start, size))

    def _reuse(self, size: int, alignment: int) -> int:
        """Memory that was freed, the longest ago that is large enough, else a gap of several.

        Raises:
            EmulationError: there is none.

        """
        fits = (piece for piece in self._freed if piece[1] >= size and piece[0] % alignment == 0)
        start = next((at for at, _ in fits), self._gap(size, alignment))
        if start is None:
            in_use = sum(held for held, _ in self.memory.allocations.values())
            raise EmulationError(
                f"allocation of {size} bytes does not fit",
                hint=f"device memory has {self.size} bytes, {in_use} are in use: --memory MIB",
            )
        end = start + size
        self._freed = deque(p for p in self._freed if p[0] + p[1] <= start or p[0] >= end)
        self.memory.open(start, size)
        self.memory.allocations[start] = (size, "")
        self.memory.end = max(self.memory.end, end)
        return self.base + start

    def _gap(self, size: int, alignment: int) -> int | None:
        """Where so many bytes fit between allocations that live, with red zones on both sides."""
        live = sorted((start, start + held) for start, (held, _) in self.memory.allocations.items())
        ends = [PAGE_BYTES, *(end for _, end in live)]
        begins = [*(begin for begin, _ in live), self.memory.size]
        for end, begin in zip(ends, begins, strict=True):
            start = -(-(end + RED_ZONE_BYTES) // alignment) * alignment
            if start + size + RED_ZONE_BYTES <= begin:
                return start
        return None

    def hold(self, address: int, size: int) -> slice:
        """The bytes of a range, which must lie in allocations.

        Raises:
            ProblemError: it does not.

        """
        start = address - self.base
        cells = self.memory.state[start : start + size] if start >= 0 else self.memory.state[:0]
        if cells.size != size or (cells == OUTSIDE).any():
            near = self.memory.describe(start)
            raise ProblemError(f"{size} bytes at {address:#x} are not all allocated: {near}")
        return slice(start, start + size)

    def mark(self, address: int, size: int) -> None:
        """The host writes there. Raises ProblemError outside allocations."""
        self.memory.state[self.hold(address, size)] = WRITTEN

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy within the device, and what is known of each byte with it."""
        to, of = self.hold(target, size), self.hold(source, size)
        self.memory.bytes[to] = self.memory.bytes[of].copy()
        self.memory.state[to] = self.memory.state[of].copy()

    def fill(self, target: int, value: int, width: int, count: int) -> None:
        """Repeat the low `width` bytes of a value."""
        to = self.hold(target, width * count)
        pattern = (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
        cells = self.memory.bytes[to].reshape(count, width)
        cells[:] = np.frombuffer(pattern, np.uint8)
        self.memory.state[to] = WRITTEN


@contextmanager
def shared(size: int) -> Iterator[Arena]:
    """An arena of `size` bytes; only what is touched is held.

    Raises:
        KernelpackError: this machine has not the room.

    """
    file = os.memfd_create("device-memory")
    try:
        yield Arena(Path(f"/proc/{os.getpid()}/fd/{file}"), size, _memory(file, size))
    finally:
        os.close(file)


def _memory(file: int, size: int) -> GlobalMemory:
    """Device memory whose bytes are those of a file."""
    try:
        os.truncate(file, size)
        return GlobalMemory(size, buffer=np.frombuffer(mmap.mmap(file, size), np.uint8))
    except (OSError, MemoryError) as error:
        raise KernelpackError(
            f"no room for {size >> 20} MiB of device memory", hint="give it less: --memory MIB"
        ) from error
