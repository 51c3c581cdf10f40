"""What sizes of problems may be: numbers, and ranges of them; most as a server would have them."""

from kernelpack.formats.dtype import DType

FLOATS = (DType.BF16, DType.BF16, DType.FP16, DType.FP32)
ROWS = (1, 8, 100, 4096, range(100_000), 2**32, 2**62)
DEPTH = (64, 4096, 7168, range(64, 12_801, 64), range(32, 4096, 32), 100)
EXPERTS = (1, 4, 32, 2**33)
GROUPS = (range(64),)
CHOOSE_FOR = (0, 0, 1, 64, range(10_000), 2**40)

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
