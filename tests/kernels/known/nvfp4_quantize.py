"""What the tests of all kernels know of this one: its machine code's units, its problems' sizes."""

from tests.kernels.known.sizes import DEPTH, EXPERTS, FLOATS, GROUPS, ROWS

UNITS = {
    "sm_100a": {"F2FP", "ACQBULK", "PREEXIT"},
    "sm_90a": {"F2FP", "ACQBULK", "PREEXIT"},
}

SIZES = {
    "t": ROWS,
    "k": DEPTH,
    "e": EXPERTS,
    "n_active": GROUPS,
    "scale_blocks": (1, 8, range(1000), 2**31, 2**40),
    "x_dtype": FLOATS,
    "grouped": (0, 1),
}
