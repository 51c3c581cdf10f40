"""Random problems of every kernel, most of them as a server would have them."""

from random import Random

from kernelpack.formats.dtype import DType
from kernelpack.spec.variant import Variant

DEVICES = ((9, 0), (9, 0), (10, 0), (10, 0), (8, 0))
FLOATS = (DType.BF16, DType.BF16, DType.FP16, DType.FP32)
ROWS = (1, 8, 100, 4096, range(100_000), 2**32, 2**62)
DEPTH = (64, 4096, 7168, range(64, 12_801, 64), range(32, 4096, 32), 100)
EXPERTS = (1, 4, 32, 2**33)
GROUPS = (range(64),)

FLAG = (0, 1)
PAGES = (1, 16, 64, range(1, 700))
CACHES = {
    "sequences": (0, 1, 16, range(300), 2**33),
    "pages": (0, 1, 32, range(2000)),
    "table_stride": (1, 32, range(4000)),
    "has_table": FLAG,
    "page": PAGES,
    "blocks": (0, 1, 1000, range(100_000), 2**31),
}

SIZES = {
    "kv_cache_append": {
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
    },
    "kv_remap_indices": {
        "t": ROWS,
        "k": (0, 1, 2048, range(5000)),
        "indices_stride": (1, 2048, range(6000)),
        **CACHES,
        "has_offsets": FLAG,
        "has_token_sequences": FLAG,
    },
    "lora_shrink_qkv": {
        "m": ROWS,
        "n": (8, 16, 64, 128, 1000, range(8, 5761, 8)),
        "k": (8, *DEPTH),
        "g": EXPERTS,
        "n_active": GROUPS,
        "a_dtype": FLOATS,
        "out_dtype": FLOATS[1:],
    },
    "nvfp4_grouped_gemm": {
        "t": ROWS,
        "n": (8, 128, 4096, 14_336, range(8, 20_000, 8), 100),
        "k": DEPTH,
        "e": EXPERTS,
        "n_active": GROUPS,
        "scale_blocks": (1, 8, range(1000), 2**31, 2**40),
        "out_dtype": FLOATS,
    },
    "nvfp4_w4a16_grouped_gemm": {
        "t": ROWS,
        "n": (8, 128, 4096, 14_336, range(8, 20_000, 8), 100),
        "k": DEPTH,
        "e": EXPERTS,
        "n_active": GROUPS,
        "out_dtype": FLOATS,
    },
    "nvfp4_quantize": {
        "t": ROWS,
        "k": DEPTH,
        "e": EXPERTS,
        "n_active": GROUPS,
        "scale_blocks": (1, 8, range(1000), 2**31, 2**40),
        "x_dtype": FLOATS,
        "grouped": (0, 1),
    },
    "sparse_mla_prefill": {  # most are served: with so many sizes, one in six each leaves nothing
        "t": (1, 5, 100, 4096, range(1, 10_000), range(1, 10_000), range(1, 10_000), 2**32),
        "h": (1, 8, 64, 128, range(1, 129), range(1, 129), range(1, 129), 129),
        "row_bytes": (1152, 1152, 1152, 1152, 1024, 1024, 640, 576, 656),
        "topk": (1, 128, 128, 2048, 2048, 2048, range(1, 2048), range(1, 2048), 2**32),
        "indices_stride": (1, *(2048,) * 6, range(2048, 10_000), 2**32),
        "page": (1, 64, range(1, 1000)),
        "blocks": (1, 512, 512, 512, range(1, 10_000), range(1, 10_000), range(1, 10_000), 2**31),
        "block_stride": (64, *(range(1000, 10_000),) * 6, 2**20),
        "q_token_stride": (*(73_728,) * 6, range(73_728, 100_000, 8), range(100_000), 2**40),
        "q_head_stride": (576, 576, 576, 576, 512, range(512, 2000, 8)),
        "scale_log2e": (*(0x3DD55555,) * 6, 2**32 - 1, 2**32),
        "dead_lse": (0x7F800000, 0xFF800000),
        "has_lse": (0, 1),
        "has_max_logits": (0, 1),
        "has_lengths": (0, 1),
        "has_sink": (0, 1),
        "kv_scales": (0, 0, 0, 1),
    },
}
"""What each size of a problem may be: numbers, and ranges of them."""

Case = tuple[dict[str, int], tuple[int, int], dict[str, int]]


def case(chance: Random, variant: Variant) -> Case:
    """Sizes, a device and addresses for the kernel of a variant; some lack one."""
    choices = SIZES[variant.kernel] | {"sm_count": (1, 108, 132, 148)}
    sizes = {name: number(chance, among) for name, among in choices.items()}
    unit = chance.choice([256, 256, 256, 16, 8])
    addresses = {a.name: unit * chance.randint(1, 2**44) for a in variant.arguments}
    for given in (sizes, addresses):
        if chance.random() < 0.02:
            del given[chance.choice(list(given))]
    return sizes, chance.choice(DEVICES), addresses


def number(chance: Random, among: tuple[int | range, ...]) -> int:
    """One of some numbers, or of a range among them."""
    found = chance.choice(among)
    return chance.choice(found) if isinstance(found, range) else int(found)
