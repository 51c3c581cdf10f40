"""What the tests of all kernels know of this one: its machine code's units, its problems' sizes."""

UNITS = {
    "sm_100a": {"ACQBULK", "PREEXIT"},
    "sm_90a": {"ACQBULK", "PREEXIT"},
}

SIZES = {
    "t": (0, 1, 5, range(500), 2**32),
    "h": (1, 8, 128, range(1, 129)),
    "partitions": (1, 2, 17, 256, 257, range(1, 257)),
    "has_lse": (0, 1),
    "has_sink": (0, 1),
    "dead_lse": (0x7F800000, 0xFF800000),
}
