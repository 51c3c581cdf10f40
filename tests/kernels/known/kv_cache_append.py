"""What the tests of all kernels know of this one: its machine code's units, its problems' sizes."""

from tests.kernels.known.sizes import CACHES, FLAG, ROWS

UNITS = {
    "sm_100a": {"ACQBULK", "PREEXIT"},
    "sm_90a": {"ACQBULK", "PREEXIT"},
}

SIZES = {
    "t": ROWS,
    "row_bytes": (1152, 1024, 576, 512, 640, 656, 528),
    "has_rope": FLAG,
    "latent_stride": (512, 576, 2**40),
    "rope_stride": (0, 64, 576),
    "slot_words": (0, 1, 2),
    **CACHES,
    "block_stride": (64, 64 * 61, range(2**20), 2**32),
    "scales_per_row": (0, 1, 5, 18),
    "scale_block": (0, 32, 128, 576),
    "power_of_two": FLAG,
}
