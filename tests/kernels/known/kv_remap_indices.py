"""What the tests of all kernels know of this one: its machine code's units, its problems' sizes."""

from tests.kernels.known.sizes import CACHES, FLAG, ROWS

UNITS = {
    "sm_100a": {"ACQBULK", "PREEXIT"},
    "sm_90a": {"ACQBULK", "PREEXIT"},
}

SIZES = {
    "t": ROWS,
    "k": (0, 1, 2048, range(5000)),
    "indices_stride": (1, 2048, range(6000)),
    **CACHES,
    "has_offsets": FLAG,
    "has_token_sequences": FLAG,
}
