"""Launches of host programs, shown in the place of being run."""

import pytest

from kernelpack.emulate.devices import find as find_device
from kernelpack.emulator.run import run
from kernelpack.predict.programs import show
from tests.emulate.conftest import host, libraries, ptx

__all__ = ["host", "libraries", "ptx"]

pytestmark = pytest.mark.toolchain


@pytest.fixture
def shown(libraries, host, ptx, capfd):
    """What is made of each launch of the program, and what it prints."""

    def start(make, **options):
        seen = []
        command = [str(host), "scale", str(ptx)]
        device = find_device("b200")
        show(command, libraries, lambda p: seen.append(make(p)), device=device, **options)
        return seen, capfd.readouterr().out

    return start


def test_a_launch_is_shown_and_not_run(shown):
    """The program's numbers are as they were: nobody multiplied them."""
    assert shown(lambda p: p.plan.entry) == (["scale"], "0 1.5 0\n")


def test_other_kernels_run(shown):
    """A pattern says which kernels are shown; what the others compute may steer those."""
    assert shown(lambda p: p.plan.entry, kernels="attention*") == ([], "0 3 0\n")


def test_a_shown_launch_may_run(shown):
    """It has all that the emulator wants of it."""

    def start(p):
        return run(p.program, p.plan, p.memory, parameters=p.parameters, addresses=p.addresses)

    (result,), printed = shown(start)
    assert result.clean
    assert printed == "0 3 0\n"
