"""A record gives back the value it was made from."""

from kernelpack.build.record import Assembled, decode, encode
from kernelpack.spec.artifact import Cubin, Resources
from kernelpack.spec.params import Slot

ASSEMBLED = Assembled(
    cubin=Cubin(image=b"\x7fELF\n\x00", target="sm_90a", spill_store_bytes=4, spill_load_bytes=8),
    resources=Resources(
        entry="fill",
        target="sm_90a",
        registers=32,
        shared_bytes=1024,
        stack_bytes=16,
        spill_bytes=12,
        slots=(Slot(0, 8), Slot(8, 4)),
    ),
)


def test_round_trip():
    """Every field and every byte comes back."""
    assert decode(encode(ASSEMBLED)) == ASSEMBLED


def test_same_bytes():
    """Equal values have equal records."""
    assert encode(decode(encode(ASSEMBLED))) == encode(ASSEMBLED)
