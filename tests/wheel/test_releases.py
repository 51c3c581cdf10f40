"""Which releases run a bundle: the table, and what a wheel asks for."""

import pytest

from kernelpack import __version__
from kernelpack.bundle.format import MAJOR
from kernelpack.errors import BundleError
from kernelpack.ops import OPS
from kernelpack.ops.op import Op
from kernelpack.wheel.releases import Release, releases, requirement

LORA = "lora_shrink_qkv"


def release(version, abis, major=1):
    return Release(version=version, major=major, abis={LORA: abis})


HISTORY = (
    release("0.1.0", range(1, 2)),
    release("0.2.0", range(1, 3)),
    release("0.3.0", range(2, 3)),
    release("1.0.0", range(2, 4), major=2),
)


def test_the_newest_row_is_this_version():
    """Its numbers are those of the code: the format it reads, the ABIs that its ops call."""
    newest = releases()[-1]
    abis = {stem: op.operation.abis for stem, op in OPS.items() if isinstance(op, Op)}
    assert (newest.version, newest.major, newest.abis) == (__version__, MAJOR, abis)


def test_a_release_has_one_row():
    """A version that was released keeps its row when the next one is begun."""
    versions = [release.version for release in releases()]
    assert len(versions) == len(set(versions))


@pytest.mark.parametrize(
    ("major", "abis", "expected"),
    [
        (1, (1,), "kernelpack>=0.1.0,<0.3.0"),
        (1, (2,), "kernelpack>=0.2.0,<1.0.0"),
        (1, (1, 2), "kernelpack>=0.1.0,<1.0.0"),
        (2, (3,), "kernelpack>=1.0.0,<2"),
    ],
)
def test_requirement(major, abis, expected):
    """From the first release that runs it to the first after it that does not."""
    assert expected == requirement(major, {LORA: abis}, HISTORY)


def test_the_next_series():
    """Where all known releases run it, the next series is not asked for: it may drop a number."""
    assert requirement(1, {LORA: (1,)}, HISTORY[:1]) == "kernelpack>=0.1.0,<0.2"


def test_a_kernel_of_others():
    """A kernel that no release has an op for asks for nothing."""
    assert requirement(1, {"mine": (7,)}, HISTORY[:1]) == "kernelpack>=0.1.0,<0.2"


@pytest.mark.parametrize(("major", "abis"), [(1, (9,)), (3, (1,))])
def test_none_runs_it(major, abis):
    """A bundle that no release runs is refused; its numbers are named."""
    with pytest.raises(BundleError, match=rf"format {major} with kernel ABIs {LORA} \[{abis[0]}\]"):
        requirement(major, {LORA: abis}, HISTORY)
