"""What the tests of all kernels know of this one: its machine code's units, its problems' sizes."""

UNITS = {
    "sm_100a": {"UTCCP", "UTCATOMSWS", "LDTM", "UTCBAR", "UTMALDG", "SYNCS"},
    "sm_90a": {"UTMALDG", "SYNCS"},
}

# Most are served: with so many sizes, one in six each leaves nothing.
SIZES = {
    "t": (1, 5, 100, 4096, range(1, 10_000), range(1, 10_000), range(1, 10_000), 2**32),
    "h": (1, 8, 64, 128, range(1, 129), range(1, 129), range(1, 129), 129),
    "row_bytes": (1152, 1152, 1152, 1152, 1024, 1024, 640, 576, 656),
    "q_bytes": (2, 2, 2, 2, 2, 1),
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
}
