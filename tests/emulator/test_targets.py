"""What a module's target says of its launch: the row is asked, whatever the target is."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack.emulator.faults import Fault, UnsupportedError
from kernelpack.spec import arch
from tests.emulator.kernel import launch

NOTHING = ""
MULTIPROCESSORS = "mov.u32 %r0, %nsmid; st.global.b32 [%mine], %r0;"


@pytest.mark.parametrize(("target", "expected"), [("sm_100a", 148), ("sm_90", 132)])
def test_multiprocessors(target, expected):
    """A kernel sees as many multiprocessors as the GPU of its target has."""
    _, words = launch(MULTIPROCESSORS, target=target)
    assert expected == words.view(np.uint32)[0]


@pytest.mark.parametrize(
    ("limits", "asks", "message"),
    [
        ({"cluster": 2}, {"grid": 4, "cluster": 4}, "a cluster of"),
        ({"threads": 64}, {"threads": 128}, "a block of 128 threads"),
        ({"grid": (3, 1, 1)}, {"grid": 4}, "a grid of"),
        ({"shared_bytes": 65_536}, {}, "bytes of shared memory"),
    ],
)
def test_limits_are_the_rows(monkeypatch, limits, asks, message):
    """A target with less than others refuses what they take."""
    row = arch.TARGETS["sm_90a"]
    assert launch(NOTHING, target="sm_90a", **asks)
    less = replace(row, limits=replace(row.limits, **limits))
    monkeypatch.setitem(arch.TARGETS, "sm_90a", less)
    with pytest.raises(Fault, match=message):
        launch(NOTHING, target="sm_90a", **asks)


def test_a_target_that_is_refused():
    """PTX of a GPU whose limits are not known is not run by another's."""
    with pytest.raises(UnsupportedError, match="`sm_120a` is not a target: it has 99 KiB"):
        launch(NOTHING, target="sm_120a")
