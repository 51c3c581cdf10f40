"""What the tests of all kernels know of this one: its machine code's units, its problems' sizes."""

UNITS = {
    "sm_100a": {"HMMA", "UBLKPF", "ACQBULK", "PREEXIT"},
    "sm_90a": {"HMMA", "UBLKPF", "ACQBULK", "PREEXIT"},
}

SIZES = {
    "t": (1, 8, 100, range(1, 4096), 2**32),
    "h": (1, 16, 128, range(1, 130)),
    "x_token_stride": (512, 65_536, range(512, 80_000, 8), 2**40),
    "x_head_stride": (512, 576, 1024),
}
