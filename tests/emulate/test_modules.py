"""Modules: which text a device runs, and where a module's variables are."""

import pytest

from kernelpack.emulate import arena
from kernelpack.emulate.modules import Modules, choose
from kernelpack.errors import ProblemError, UnsupportedError
from tests.emulate.images import SCALE

B200, H100 = (10, 0), (9, 0)


def text(target: str) -> str:
    return f".version 8.6\n.target {target}\n"


@pytest.mark.parametrize(
    ("targets", "capability", "chosen"),
    [
        (["sm_80", "sm_90", "sm_90a"], H100, "sm_90a"),
        (["sm_80", "sm_90", "sm_90a"], B200, "sm_90"),
        (["sm_90a", "sm_100f", "sm_100"], B200, "sm_100f"),
        (["sm_100a", "sm_100f"], B200, "sm_100a"),
        (["sm_120", "sm_75"], B200, "sm_75"),
    ],
)
def test_the_best_text_is_chosen(targets, capability, chosen):
    """A text for the device comes before one for its family, and that before older ones."""
    assert choose(map(text, targets), capability) == text(chosen)


@pytest.mark.parametrize("targets", [["sm_90a"], ["sm_103a", "sm_120"], []])
def test_no_text_for_the_device(targets):
    """A program for other devices is refused; the message lists them."""
    with pytest.raises(UnsupportedError, match="the device is sm_100") as error:
        choose(map(text, targets), B200)
    assert all(target in str(error.value) for target in targets)


@pytest.fixture
def modules():
    with arena.shared(1 << 20) as memory:
        yield Modules(memory, B200, lambda _image: None)


def test_variables_are_placed_with_their_values(modules):
    """A variable has an address as soon as its module is loaded, and holds its initial value."""
    number = modules.load(SCALE.encode())
    address, size = modules.modules[number].variable("calls")
    assert modules.arena.memory.read(address, size).tolist() == [7, 0, 0, 0]


def test_an_unknown_variable(modules):
    """A name that the module does not hold is an error."""
    number = modules.load(SCALE.encode())
    with pytest.raises(ProblemError, match="no variable `nothing`"):
        modules.modules[number].variable("nothing")
