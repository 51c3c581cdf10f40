"""Device memory shared with a program."""

import numpy as np
import pytest

from kernelpack.emulate import arena
from kernelpack.emulator.faults import EmulationError
from kernelpack.emulator.machine.memory import FRESH, WRITTEN
from kernelpack.errors import KernelpackError, ProblemError


@pytest.fixture
def memory():
    with arena.shared(1 << 16) as shared:
        yield shared


def states(memory, address, size):
    return set(memory.memory.state[memory.hold(address, size)].tolist())


def test_a_program_sees_the_bytes(memory):
    """What is written here is in the file that the program maps."""
    address = memory.allocate(16)
    memory.memory.write_bytes(address, b"0123456789abcdef")
    at = address - memory.base
    assert memory.path.read_bytes()[at : at + 16] == b"0123456789abcdef"


def test_the_file_has_no_name(memory):
    """Nothing is left behind, however the emulator ends: only who has it open finds the file."""
    assert "(deleted)" in str(memory.path.readlink())


def test_more_memory_than_there_is():
    """Device memory that this machine has not the room for is refused."""
    with pytest.raises(KernelpackError, match="no room for 68719476736 MiB of device memory"):
        arena.shared(1 << 56).__enter__()


def test_fresh_memory_was_never_written(memory):
    """Device memory is fresh until a copy is announced; managed memory counts as written."""
    address, managed = memory.allocate(8), memory.allocate(8, managed=True)
    assert (states(memory, address, 8), states(memory, managed, 8)) == ({FRESH}, {WRITTEN})
    memory.mark(address, 8)
    assert states(memory, address, 8) == {WRITTEN}


def test_a_copy_takes_its_state_along(memory):
    """A copy of bytes never written was never written either."""
    source, target = memory.allocate(8), memory.allocate(8)
    memory.mark(source, 4)
    memory.copy(target, source, 8)
    assert (states(memory, target, 4), states(memory, target + 4, 4)) == ({WRITTEN}, {FRESH})


@pytest.mark.parametrize(
    ("value", "width", "expected"),
    [(0x1AB, 1, [0xAB] * 4), (0x1234, 2, [0x34, 0x12] * 2), (0x01020304, 4, [4, 3, 2, 1])],
)
def test_fill(memory, value, width, expected):
    """A value's low bytes are repeated."""
    address = memory.allocate(4)
    memory.fill(address, value, width, 4 // width)
    assert memory.memory.read(address, 4).tolist() == expected


@pytest.mark.parametrize("offset", [-1, 1, 1 << 20, -(1 << 50)])
def test_a_range_outside_is_refused(memory, offset):
    """A range must lie in allocations; the message names the nearest."""
    address = memory.allocate(64)
    with pytest.raises(ProblemError, match="not all allocated"):
        memory.mark(address + offset, 64)


def test_freed_memory_is_outside(memory):
    """After its release memory is a red zone, and cannot be released again."""
    address = memory.allocate(64)
    memory.release(address)
    assert np.all(memory.memory.read(address, 64) == 0xFF)
    with pytest.raises(ProblemError, match="not all allocated"):
        memory.hold(address, 1)
    with pytest.raises(ProblemError, match="free already"):
        memory.release(address)


def test_freed_memory_comes_back_last(memory):
    """Memory that was freed is given out again, the oldest first, once there is no other."""
    first = memory.allocate(1 << 14)
    memory.release(first)
    second = memory.allocate(1 << 14)
    memory.release(second)
    assert (first, memory.allocate(1 << 14)) != (second, first)
    assert memory.allocate(1 << 14) == first
    assert states(memory, first, 1 << 14) == {FRESH}


def test_memory_that_is_full(memory):
    """The message says how much is in use: what was freed is not."""
    memory.release(memory.allocate(1 << 15))
    memory.allocate(256)
    with pytest.raises(EmulationError, match="65536 bytes, 256 are in use"):
        memory.allocate(1 << 16)


def test_pieces_that_were_freed_are_joined(memory):
    """What no single piece has room for goes where several were."""
    pieces = [memory.allocate(1 << 13) for _ in range(6)]
    for piece in pieces:
        memory.release(piece)
    assert memory.allocate(5 << 13) - memory.base < 1 << 14


def test_managed_memory_has_pages_of_its_own(memory):
    """The host may touch them, and must not see others'."""
    before, managed, after = (
        memory.allocate(8),
        memory.allocate(8, managed=True),
        memory.allocate(8),
    )
    assert managed % 4096 == 0
    assert len({address // 4096 for address in (before, managed, after)}) == 3
