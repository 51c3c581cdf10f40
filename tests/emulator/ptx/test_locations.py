"""Lines of the source, and the calls that lead to them."""

import pytest

from kernelpack.emulator.ptx.locations import MAX_CALLS, Locations

FILES = {1: "kernel.cu", 2: "mbarrier.cuh", 3: "tiles.cuh"}


def call(here, at):
    return f".loc {here}, function_name $f, inlined_at {at}"


LOAD = [".loc 1 90 5", call("1 40 5", "1 90 5"), call("2 72 5", "1 40 5"), call("2 48 9", "2 72 5")]
"""The kernel calls a function of its file, which waits: a wrapper of a wrapper of a header."""
TILES = [".loc 1 90 5", call("3 74 5", "1 90 5"), call("1 41 9", "3 74 5")]
"""The kernel hands a lambda to a header."""


def location(*directives):
    locations = Locations(FILES)
    for directive in directives:
        locations.take(directive)
    return locations.now


@pytest.mark.parametrize(
    ("directives", "expected"),
    [
        ([".loc 1 9 5"], "kernel.cu:9"),
        (LOAD[:2], "kernel.cu:40"),
        (LOAD[:3], "kernel.cu:40"),
        (LOAD, "kernel.cu:40 (mbarrier.cuh:72)"),
        (TILES, "kernel.cu:41"),
        ([".loc 7 9 5"], "file 7:9"),
        ([call("2 72 5", "1 40 5")], "kernel.cu:40"),
    ],
)
def test_place(directives, expected):
    """The line of the kernel's own file, and after it the chain of headers."""
    assert expected == location(*directives).place


def test_the_latest_call_counts():
    """A wrapper that is called again is where it was called last."""
    again = [call("2 72 5", "1 55 5"), call("2 48 9", "2 72 5")]
    assert location(*LOAD, *again).place == "kernel.cu:55 (mbarrier.cuh:72)"


@pytest.mark.parametrize(
    ("directive", "expected"),
    [
        (".loc 3 0 9", "kernel.cu:41"),
        (call("3 0 9", "1 90 5"), "kernel.cu:90"),
        (".loc 3 74 5", "kernel.cu:90"),
    ],
)
def test_what_nvcc_leaves_out(directive, expected):
    """Line 0 is not a line, and a line without its call keeps the one it had."""
    assert expected == location(*TILES, directive).place


def test_no_line():
    """Before any line there is none; line 0 makes none."""
    assert location(".loc 1 0 5", ".pragma") is None


def test_a_circle_ends():
    """A position that is its own caller is followed so far and no further."""
    circle = [call("1 2 1", "1 2 1")] * 1000
    assert len(list(location(*circle).calls)) <= MAX_CALLS
