"""What the tests of all kernels know of this one: its machine code's units, its problems' sizes."""

from tests.kernels.known.sizes import CACHES, FLAG

UNITS = {
    "sm_100a": {"HMMA", "UBLKPF", "ACQBULK", "PREEXIT"},
    "sm_90a": {"HMMA", "UBLKPF", "ACQBULK", "PREEXIT"},
}

SIZES = {
    "t": (1, 8, 100, range(1, 4096), 2**32),
    "h": (0, 1, 16, 128, range(130)),
    "rope": (64, 64, 64, 0),
    "absorbs": FLAG,
    "rotates": FLAG,
    "appends": FLAG,
    "q_token_stride": (192, 24_576, range(192, 30_000, 8), 2**40),
    "q_head_stride": (128, 192, 200),
    "new_stride": (512, 576, 2112),
    "gamma_bytes": (2, 4),
    "epsilon": (0x358637BD,),
    "most_positions": (1, 4096, 163_840),
    "slot_words": (0, 1, 2),
    "position_words": (0, 1, 2),
    "has_batch": FLAG,
    **CACHES,
    "block_stride": (64, 64 * 61, range(2**20), 2**32),
    "row_bytes": (1152, 1024, 576, 512, 640, 656),
    "scales_per_row": (0, 1, 5, 18),
    "scale_block": (0, 32, 128, 576),
    "power_of_two": FLAG,
}
