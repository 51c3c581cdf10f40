"""Registers that a thread of a kernel with setmaxnreg starts with: those that ptxas gives it."""

import pytest

from kernelpack.emulator import registers
from kernelpack.emulator.ptx.parser import parse
from kernelpack.spec.arch import Arch
from tests.emulator.kernel import text

ASKS = "setmaxnreg.dec.sync.aligned.u32 24; setmaxnreg.inc.sync.aligned.u32 {};"


@pytest.mark.parametrize(
    ("expected", "directives", "most"),
    [
        (256, ".maxntid 256, 1, 1 .minnctapersm 1", 256),
        (168, ".maxntid 288, 1, 1 .minnctapersm 1", 256),
        (168, ".reqntid 384, 1, 1 .minnctapersm 1", 240),
        (128, ".maxntid 512, 1, 1 .minnctapersm 1", 240),
        (80, ".maxntid 704, 1, 1 .minnctapersm 1", 240),
        (64, ".maxntid 1024, 1, 1 .minnctapersm 1", 240),
        (168, ".maxntid 192, 1, 1 .minnctapersm 2", 240),
        (80, ".maxntid 384, 1, 1 .minnctapersm 2", 240),
        (104, ".maxntid 384, 1, 1 .minnctapersm 1", 104),
        (104, ".maxnreg 100", 240),
        (128, ".maxntid 384, 1, 1 .minnctapersm 1 .maxnreg 128", 240),
        (None, ".maxntid 384, 1, 1", 240),
        (None, ".minnctapersm 1", 240),
        (None, "", 240),
    ],
)
def test_at_start(expected: int | None, directives: str, most: int):
    """As many as ptxas 13.4 says it used, which says 255 where 256 are allocated."""
    entry = parse(text(ASKS.format(most), directives=directives)).entry("test")
    assert expected == registers.at_start(entry, Arch("sm_90a").target.multiprocessor)
