"""The devices that a program may find."""

import pytest

from kernelpack.emulate.devices import MULTIPROCESSORS, find
from kernelpack.errors import KernelpackError


@pytest.mark.parametrize(
    ("name", "capability", "multiprocessors"),
    [("b200", (10, 0), 148), ("b300", (10, 3), 148), ("h100", (9, 0), 132)],
)
def test_profiles(name, capability, multiprocessors):
    """Each profile has the capability and the size of the real thing."""
    device = find(name)
    assert device.capability == capability
    assert device.attributes[MULTIPROCESSORS] == multiprocessors


def test_another_size():
    """A device of another size is the same but for its multiprocessors."""
    small = find("b200").with_multiprocessors(2)
    assert small.attributes == {**find("b200").attributes, MULTIPROCESSORS: 2}


def test_an_unknown_device():
    """The message lists the devices there are."""
    with pytest.raises(KernelpackError, match="devices: b200, b300, h100"):
        find("b400")
