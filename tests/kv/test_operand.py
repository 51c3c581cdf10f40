"""What a caller hands over, and where its rows lie: `kernelpack.kv`."""

import ml_dtypes
import numpy as np
import pytest

import kernelpack
from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.rows import FORMATS, format_of
from kernelpack.kernels.kv_operand.storage import MAX_ROWS, Storage
from kernelpack.kv import Continuous, Padded, Paged, Ragged, operand
from kernelpack.ops.arrays import DeviceArray, host_view

BF16 = ml_dtypes.bfloat16


def stored(kv, array=None):
    return kv.storage(host_view(kv.rows if array is None else array, "rows"))


def zeros(*shape, dtype=BF16):
    return np.zeros(shape, dtype)


CACHE = zeros(5, 2, 3, 16, 1, 576)


@pytest.mark.parametrize(
    ("kv", "page", "blocks", "block_stride", "offset_rows"),
    [
        (Paged(zeros(7, 64, 576)), 64, 7, 64, 0),
        (Paged(zeros(7, 64, 1, 576)), 64, 7, 64, 0),
        (Paged(CACHE, layer=0), 16, 5, 96, 0),
        (Paged(CACHE[:, :, :1]), 16, 5, 96, 0),
        (Paged(CACHE, layer=2, half=1), 16, 5, 96, 80),
        (Paged(CACHE, layer=np.int32(2), half=np.array(1)), 16, 5, 96, 80),
        (Paged(CACHE[:, 1, 2]), 16, 5, 96, 0),
        (Paged(CACHE[:, 1, 2, :, 0]), 16, 5, 96, 0),
        (Paged(CACHE[:1], layer=1), 16, 1, 16, 16),
        (Continuous(zeros(4, 100, 576)), 100, 4, 100, 0),
        (Continuous(zeros(4, 1, 2, 100, 1, 576), layer=1), 100, 4, 200, 100),
        (Padded(zeros(3, 50, 576)), 150, 1, 150, 0),
        (Padded(zeros(3, 80, 576)[:, :50]), 50, 3, 80, 0),
        (Padded(zeros(3, 50, 1, 576)), 150, 1, 150, 0),
        (Ragged(zeros(123, 576)), 123, 1, 123, 0),
        (Ragged(zeros(123, 1, 576)), 123, 1, 123, 0),
        (operand(zeros(9, 576)), 9, 1, 9, 0),
    ],
)
def test_where_rows_lie(kv, page, blocks, block_stride, offset_rows):
    """Blocks, their rows, how far apart, and where the layer begins, of views of any array."""
    found = stored(kv)
    assert (page, blocks, block_stride) == (found.page, found.blocks, found.block_stride)
    assert offset_rows * found.row_bytes == found.offset_bytes
    assert found.num_kv_rows == (blocks - 1) * block_stride + page


@pytest.mark.parametrize(
    ("kv", "says"),
    [
        (Paged(zeros(4, 576)), r"kv.Paged: `blocks` must have 3, 4 or 6 sides, not the shape \["),
        (Paged(zeros(4, 2, 16, 1, 576)), "must have 3, 4 or 6 sides"),
        (Continuous(zeros(4, 576)), r"kv.Continuous: `slots` must have 3, 4 or 6 sides"),
        (Padded(zeros(4, 576)), r"kv.Padded: `rows` must have 3 or 4 sides"),
        (Ragged(zeros(4)), r"kv.Ragged: `rows` must have 2 or 3 sides"),
        (Paged(CACHE, layer=3), "kv.Paged: `layer` must be 0 to 2, not 3"),
        (Paged(CACHE, half=2), "kv.Paged: `half` must be 0 to 1, not 2"),
        (Paged(CACHE, layer=-1), "`layer` must be 0 to 2, not -1"),
        (Paged(CACHE), "kv.Paged: `layer` must be 0 to 2, not left out"),
        (Continuous(CACHE), "kv.Continuous: `layer` must be 0 to 2, not left out"),
        (Paged(CACHE, layer=True), "`layer` must be an integer, not True"),
        (Paged(CACHE, layer=2.0), "`layer` must be an integer, not 2.0"),
        (Paged(CACHE, layer="2"), "`layer` must be an integer, not '2'"),
        (Paged(CACHE, layer=1, half=None), "`half` must be an integer, not None"),
        (Paged(zeros(4, 16, 576), layer=1), "`layer` must be 0 where `blocks` has one layer"),
        (Continuous(zeros(4, 16, 576), half=1), "`half` must be 0 where `slots` has one"),
        (Paged(zeros(4, 16, 1152)[:, :, :576]), "`blocks`: rows of a block must be adjacent"),
        (Paged(zeros(4, 16, 1152)[:, :, ::2]), "elements of a row must be adjacent"),
        (Paged(zeros(4, 16, 2, 1152)[..., :576]), "heads of a row must be adjacent"),
        (
            Paged(np.lib.stride_tricks.as_strided(zeros(9999), (2, 2, 64), (1000, 128, 2))),
            "blocks must be a multiple of a row, 64 elements, apart",
        ),
        (Ragged(zeros(10, 20)), "bytes of a row must be a multiple of 16, not 40"),
        (Paged(zeros(3, 0, 576)), "rows of a block must be at least 1, not 0"),
    ],
)
def test_arrays_that_hold_no_rows(kv, says):
    """The storage, its member, the rule and what was found are named."""
    with pytest.raises(ProblemError, match=says):
        stored(kv)


@pytest.mark.parametrize("row", FORMATS.values(), ids=FORMATS)
def test_formats_by_width(row):
    """Type and width say which format rows have; bytes are taken for e4m3."""
    assert row is format_of(row.dtype, row.elements)
    kind = DType.U8 if row.dtype is DType.E4M3 else row.dtype
    assert row is stored(Ragged(zeros(2, row.elements, dtype=kind.numpy))).row


@pytest.mark.parametrize(
    ("kv", "says"),
    [
        (Ragged(zeros(2, 640)), "not bf16 640"),
        (Ragged(zeros(2, 2, 576)), "not 2 heads of bf16 576"),
        (Ragged(zeros(2, 528, dtype=np.uint8)), "not u8 528"),
        (Ragged(zeros(2, 576, dtype=np.float16)), "not fp16 576"),
    ],
)
def test_rows_of_no_format(kv, says):
    """What is no MLA row is refused, with the rows there are."""
    with pytest.raises(ProblemError, match=f"must be bf16 576 or 512, e4m3 or u8 .*{says}"):
        _ = stored(kv).row


@pytest.mark.parametrize(
    ("kv", "scales", "per_row", "offset"),
    [
        (Paged(zeros(4, 16, 640, dtype=np.uint8)), (4, 16), 1, 0),
        (Paged(zeros(4, 16, 640, dtype=np.uint8)), (4, 16, 1), 1, 0),
        (Paged(zeros(4, 16, 1, 576, dtype=np.uint8)), (4, 16, 1, 5), 5, 0),
        (Paged(zeros(4, 1, 3, 16, 1, 640, dtype=np.uint8), layer=2), (4, 1, 3, 16, 1, 1), 1, 128),
        (Continuous(zeros(4, 16, 640, dtype=np.uint8)), (4, 16), 1, 0),
        (Padded(zeros(4, 16, 640, dtype=np.uint8)), (4, 16), 1, 0),
        (Ragged(zeros(20, 512, dtype=np.uint8)), (20,), 1, 0),
        (Ragged(zeros(20, 512, dtype=np.uint8)), (20, 16), 16, 0),
        (Ragged(zeros(20, 3, 32, dtype=np.uint8)), (20, 3, 2), 6, 0),
    ],
)
def test_scales_beside_rows(kv, scales, per_row, offset):
    """An array with the rows' sides, one scale or several a row; those of a cache's layer too."""
    array = np.zeros(scales, np.float32)
    found = kv.scales_of(stored(kv), host_view(array, "scales"))
    assert (per_row, offset) == (found.per_row, found.offset_bytes)


@pytest.mark.parametrize(
    ("scales", "says"),
    [
        (np.zeros((4, 15), np.float32), r"the rows' sides \[4, 16, 1\], not \[4, 15, 1\]"),
        (np.zeros((4, 16), np.float64), "`scales`: must be fp32, not fp64"),
        (np.zeros((4, 20), np.float32)[:, :16], "blocks must be 16 rows apart .* not 20"),
        (np.zeros(64, np.float32), "`scales` must have 2, 3, 4 or 6 sides"),
    ],
)
def test_scales_that_do_not_fit(scales, says):
    """Scales are fp32, of the rows' sides, and lie as they do: a row's number is its scale's."""
    kv = Paged(zeros(4, 16, 640, dtype=np.uint8))
    with pytest.raises(ProblemError, match=f"kv.Paged.*{says}"):
        kv.scales_of(stored(kv), host_view(scales, "scales"))


def test_the_most_rows():
    """Virtual rows and encoded indices are numbers of 31 bits, with room for a tile."""
    sizes = {"page": 64, "blocks": 3, "block_stride": 2**30}
    whole = Storage(kind="Paged", dtype=DType.U8, head_size=640, **sizes)
    with pytest.raises(ProblemError, match=r"num_kv_rows must be below 2\^31 - 256"):
        whole.check()
    rows = DeviceArray(pointer=0, shape=(MAX_ROWS, 512), dtype=DType.U8)
    with pytest.raises(ProblemError, match=r"blocks \* page must be below 2\^31 - 256"):
        Ragged(rows).storage(rows)


def test_names():
    """`kernelpack.kv` is there without being imported."""
    assert kernelpack.kv.Paged is Paged
