"""The memory left is the least of what the machine and every control group leave."""

import pytest

from kernelpack.workers.memory import available_bytes, used_bytes

MIB = 2**20


@pytest.fixture
def machine(tmp_path):
    """A machine with 8 MiB left and a process in the group /outer/inner, none limited."""
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal:  16384 kB\nMemAvailable:  8192 kB\n")
    (proc / "self" / "cgroup").write_text("0::/outer/inner\n")
    (groups / "outer" / "inner").mkdir(parents=True)
    return proc, groups


def limit(folder, most, current):
    (folder / "memory.max").write_text(f"{most}\n")
    (folder / "memory.current").write_text(f"{current}\n")


def test_machine(machine):
    """Without limits it is what the machine has."""
    assert available_bytes(*machine) == 8 * MIB


def test_old_kernel(machine):
    """A machine without control groups has what it has."""
    (machine[0] / "self" / "cgroup").unlink()
    assert available_bytes(*machine) == 8 * MIB


@pytest.mark.parametrize("group", ["outer", "outer/inner", "."])
def test_a_group_bounds(machine, group):
    """A limit counts wherever it is above the process, less what is used."""
    limit(machine[1] / group, 4 * MIB, MIB)
    assert available_bytes(*machine) == 3 * MIB


def test_no_limit_is_no_bound(machine):
    """`max` is not a number."""
    limit(machine[1] / "outer", "max", MIB)
    assert available_bytes(*machine) == 8 * MIB


def test_no_count_of_what_is_used(machine):
    """A group that does not say what it holds leaves its limit."""
    (machine[1] / "outer" / "memory.max").write_text(f"{4 * MIB}\n")
    assert available_bytes(*machine) == 4 * MIB


@pytest.fixture
def old(machine):
    """The same with control groups of version 1."""
    (machine[0] / "self" / "cgroup").write_text("9:cpu:/x\n5:hugetlb,memory:/outer/inner\n0::/y\n")
    (machine[1] / "memory" / "outer" / "inner").mkdir(parents=True)
    return machine


def old_limit(folder, most, current):
    (folder / "memory.limit_in_bytes").write_text(f"{most}\n")
    (folder / "memory.usage_in_bytes").write_text(f"{current}\n")


@pytest.mark.parametrize("group", ["outer", "outer/inner", "."])
def test_an_old_group_bounds(old, group):
    """A limit of version 1 counts likewise, in a container at the root."""
    old_limit(old[1] / "memory" / group, 4 * MIB, MIB)
    assert available_bytes(*old) == 3 * MIB


def test_no_limit_of_an_old_group(old):
    """The largest number of whole pages is no limit."""
    old_limit(old[1] / "memory" / "outer", 2**63 - 4096, MIB)
    assert available_bytes(*old) == 8 * MIB


def test_used_bytes():
    """A Python process uses more than a MiB and less than 100 GiB."""
    assert MIB < used_bytes() < 100 * 1024 * MIB
