"""What the tests of all kernels know of this one: its machine code's units, its problems' sizes."""

UNITS = {
    "sm_100a": {"UTCCP", "UTCATOMSWS", "LDTM", "UTCBAR", "UTMALDG", "SYNCS"},
    "sm_90a": {"UTMALDG", "SYNCS"},
}

_FLAG = (0, 1)

# Most are served: with so many sizes, one in six each leaves nothing.
SIZES = {
    "t": (1, 5, 100, 256, range(1, 500), range(1, 500), 2**32),
    "h": (1, 8, 64, 128, range(1, 129), range(1, 129), range(1, 129), 129),
    "partitions": (1, 1, 2, 17, 256, range(1, 257)),
    "split_units": (1, 1, 2, range(1, 100)),
    "row_bytes": (1152, 1152, 656, 656, 1024, 1024, 640),
    "kv_scales": (0, 0, 0, 1),
    "q_token_stride": (*(73_728,) * 6, range(73_728, 100_000, 8), 2**40),
    "q_head_stride": (576, 576, 576, 512, range(512, 2000, 8)),
    "topk": (0, 1, 128, 2048, 2048, range(1, 2048), 2**32),
    "indices_stride": (2048, 2048, 2048, range(2048, 10_000), 2**32),
    "lengths": (0, 5),
    "page": (1, 64, range(1, 1000)),
    "blocks": (1, 512, 512, range(1, 10_000), 2**31),
    "block_stride": (*(range(1000, 10_000),) * 4, 2**20),
    "extra_topk": (0, 0, 64, 512, 2**32),
    "extra_indices_stride": (512, range(512, 1000)),
    "extra_lengths": (0, 5),
    "extra_page": (0, 1, 64),
    "extra_blocks": (0, 1, 100),
    "extra_block_stride": (64, 1000),
    "sequences": (0, 1, 5, 100, 2**32),
    "pages": (0, 1, 128),
    "table_stride": (0, 128, 200),
    "has_row_offsets": _FLAG,
    "has_cache_lengths": _FLAG,
    "lengths_of_sequences": _FLAG,
    "causal": _FLAG,
    "has_lse": _FLAG,
    "has_sink": _FLAG,
    "scale_log2e": (*(0x3DD55555,) * 6, 2**32 - 1, 2**32),
    "dead_lse": (0x7F800000, 0xFF800000),
}
