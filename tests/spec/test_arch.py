"""Targets, and the devices that each runs on."""

import pytest

from kernelpack.errors import KernelpackError
from kernelpack.spec.arch import TARGETS, Arch, of_ptx


@pytest.mark.parametrize(
    ("name", "capability", "expected"),
    [
        ("sm_90a", (9, 0), True),
        ("sm_90a", (10, 0), False),
        ("sm_100a", (10, 0), True),
        ("sm_100a", (10, 3), False),
        ("sm_100f", (10, 0), True),
        ("sm_100f", (10, 3), True),
        ("sm_100f", (10, 7), True),
        ("sm_100f", (10, 1), False),
        ("sm_100f", (11, 0), False),
        ("sm_100f", (12, 0), False),
        ("sm_103a", (10, 3), True),
        ("sm_103a", (10, 0), False),
    ],
)
def test_runs_on(name, capability, expected):
    """An `a` target runs on one capability; a family target on those of its table."""
    assert expected is Arch(name).runs_on(capability)


@pytest.mark.parametrize(("name", "columns"), [("sm_90a", 0), ("sm_100a", 512), ("sm_100f", 512)])
def test_limits(name, columns):
    """A block has 227 KiB of shared memory; tensor memory came with 10.0."""
    limits = Arch(name).limits
    assert (limits.shared_bytes, limits.tensor_memory_columns) == (227 * 1024, columns)


def test_unknown_name():
    """A target without a row cannot be, and the error names the nearest one."""
    with pytest.raises(KernelpackError, match="did you mean `sm_90a`"):
        Arch("sm_90")


@pytest.mark.parametrize("name", ["sm_120a", "sm_120f", "sm_120", "sm_121a"])
def test_refused_by_name(name):
    """A GPU that no kernel here fits is refused with the reason."""
    with pytest.raises(
        KernelpackError, match="is not a target: it has 99 KiB of shared memory a b"
    ):
        Arch(name)


@pytest.mark.parametrize(
    ("ptx", "expected"),
    [
        ("sm_90a", "sm_90a"),
        ("sm_90", "sm_90a"),
        ("sm_103a", "sm_103a"),
        ("sm_103f", "sm_100a"),
        ("sm_110a", "sm_100a"),
        ("sm_75", "sm_100a"),
    ],
)
def test_the_row_of_ptx(ptx, expected):
    """PTX of another target runs by the row of its family, or on a later GPU."""
    assert TARGETS[expected] is of_ptx(ptx)


def test_ptx_that_no_target_runs():
    """PTX for a GPU that is refused has no row."""
    with pytest.raises(KernelpackError, match="`sm_120a` is not a target"):
        of_ptx("sm_120a")


def test_order_and_text():
    """Targets sort by name and print as it."""
    assert [str(a) for a in sorted([Arch("sm_90a"), Arch("sm_100a")])] == ["sm_100a", "sm_90a"]


@pytest.mark.parametrize(("name", "expected"), [("sm_90a", 132), ("sm_100a", 148)])
def test_multiprocessors(name, expected):
    """An H100 has 132 multiprocessors, a B200 148."""
    assert expected == Arch(name).multiprocessors


@pytest.mark.parametrize("name", [None, 100, b"sm_90a", ("sm_90a",)])
def test_what_is_no_name(name):
    """A target that is no text is refused as one that is not there is."""
    with pytest.raises(KernelpackError, match="a target is named by a text, not"):
        Arch(name)
