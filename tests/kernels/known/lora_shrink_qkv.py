"""What the tests of all kernels know of this one: its machine code's units, its problems' sizes."""

from tests.kernels.known.sizes import CHOOSE_FOR, DEPTH, EXPERTS, FLOATS, GROUPS, ROWS

UNITS = {
    "sm_100a": {"UTCHMMA", "UTCATOMSWS", "LDTM", "UTCBAR", "UTMALDG", "SYNCS"},
    "sm_90a": {"HGMMA", "UTMALDG", "SYNCS"},
}

SIZES = {
    "m": ROWS,
    "n": (8, 16, 64, 128, 1000, range(8, 5761, 8)),
    "k": (8, *DEPTH),
    "g": EXPERTS,
    "n_active": GROUPS,
    "choose_for": CHOOSE_FOR,
    "a_dtype": FLOATS,
    "out_dtype": FLOATS[1:],
}
