"""The loader's SHA-256 is SHA-256, by the processor's instructions and without them."""

from hashlib import sha256

import pytest

from tests.cpp.compiler import ask

SIZES = [*range(200), 1023, 1024, 1025, 4096, 100_001]


def test_every_length_and_prefix(inspect):
    """A digest does not depend on where a block ends, nor on how much of it is a prefix."""
    cases = [(size, prefix) for size in SIZES for prefix in (0, 1, 31, 63) if prefix <= size]
    expected = [
        " ".join([sha256(bytes((i * 7 + 3) % 256 for i in range(size))).hexdigest()] * 2)
        for size, _ in cases
    ]
    lines = [f"{size} {prefix}" for size, prefix in cases]
    assert expected == ask(inspect, "digests", lines=lines)


@pytest.mark.parametrize(
    "sizes", [[], [0], [1024], [1024, 512, 512, 64], [0, 54, 55, 63, 64, 1000, 1], [512, 1024, 7]]
)
def test_messages_together(inspect, sizes):
    """Digests that are made together are those made one by one, whichever message is longest."""
    expected = [sha256(b"\1" + b"x" * size).hexdigest() for size in sizes]
    (told,) = ask(inspect, "messages", lines=[" ".join(map(str, sizes))])
    assert expected * 2 == told.split()
