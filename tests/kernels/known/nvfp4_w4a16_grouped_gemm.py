"""What the tests of all kernels know of this one: its machine code's units, its problems' sizes."""

from tests.kernels.known.sizes import CHOOSE_FOR, DEPTH, EXPERTS, FLOATS, GROUPS, ROWS

UNITS = {
    "sm_90a": {"UTMALDG", "SYNCS", "HMUL2"},
}

SIZES = {
    "t": ROWS,
    "n": (8, 128, 4096, 14_336, range(8, 20_000, 8), 100),
    "k": DEPTH,
    "e": EXPERTS,
    "n_active": GROUPS,
    "choose_for": CHOOSE_FOR,
    "out_dtype": FLOATS,
}
