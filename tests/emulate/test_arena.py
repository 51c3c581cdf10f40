"""Device memory shared with a program."""

import numpy as np
import pytest

from kernelpack.emulate import arena
from kernelpack.emulator.machine.memory import FRESH, WRITTEN
from kernelpack.errors import ProblemError


@pytest.fixture
def memory(tmp_path):
    with arena.shared(tmp_path, 1 << 16) as shared:
        yield shared


def states(memory, address, size):
    return set(memory.memory.state[memory.hold(address, size)].tolist())


def test_a_program_sees_the_bytes(memory):
    """What is written here is in the file that the program maps."""
    address = memory.allocate(16)
    memory.memory.write_bytes(address, b"0123456789abcdef")
    at = address - memory.base
    assert memory.path.read_bytes()[at : at + 16] == b"0123456789abcdef"


def test_the_file_goes(tmp_path):
    """Nothing is left behind."""
    with arena.shared(tmp_path, 4096):
        pass
    assert list(tmp_path.iterdir()) == []


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
