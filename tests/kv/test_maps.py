"""Tensor maps of a KV operand: dims, strides and boxes, and what is refused before a launch."""

import pytest

from kernelpack.errors import ProblemError, TensorMapError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand import maps
from kernelpack.kernels.kv_operand.storage import Storage
from kernelpack.spec.tensormap import Element, Swizzle

BASE = 1 << 20
LAYERED = {"kind": "Paged", "page": 16, "blocks": 10, "block_stride": 48}
BF16 = Storage(dtype=DType.BF16, head_size=576, offset_bytes=16 * 1152, **LAYERED)
HEADS = Storage(dtype=DType.BF16, heads=2, head_size=128, offset_bytes=16 * 512, **LAYERED)
ROPE = Storage(dtype=DType.U8, head_size=640, **LAYERED)
INLINE = Storage(dtype=DType.U8, head_size=656, **LAYERED)
FLAT = Storage(dtype=DType.U8, head_size=576, **LAYERED)
TOTAL = Storage(kind="Ragged", dtype=DType.U8, head_size=512, page=61)
ROWS = 9 * 48 + 16


def described(made):
    """What a map is, without its name."""
    return made.element, made.address - BASE, made.dims, made.strides_bytes, made.box


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (
            maps.tile(BF16, BASE, rows=64),
            (Element.BF16, 0, (576, 1, ROWS), (1152, 1152), (64, 1, 16)),
        ),
        (
            maps.tile(HEADS, BASE, rows=8, swizzle=Swizzle.B64),
            (Element.BF16, 0, (128, 2, ROWS), (256, 512), (32, 1, 8)),
        ),
        (
            maps.tile(FLAT, BASE, rows=16, depth=512),
            (Element.U8, 0, (512, 1, ROWS), (576, 576), (128, 1, 16)),
        ),
        (
            maps.ragged_tile(HEADS, BASE, rows=16),
            (Element.BF16, -16 * 512, (128, 16, 2 * ROWS + 2), (512, 256), (64, 16, 1)),
        ),
        (maps.scale_tile(TOTAL, BASE, rows=32), (Element.FP32, 0, (61, 1), (256,), (32, 1))),
        (maps.scale_tile(ROPE, BASE, rows=64), (Element.FP32, 0, (ROWS, 1), (4 * ROWS,), (16, 1))),
        (
            maps.rope_tile(ROPE, BASE, rows=64),
            (Element.BF16, 512, (64, 1, ROWS), (640, 640), (64, 1, 16)),
        ),
        (
            maps.rope_tile(INLINE, BASE, rows=16),
            (Element.BF16, 528, (64, 1, ROWS), (656, 656), (64, 1, 16)),
        ),
        (
            maps.gather4(BF16, BASE, swizzle=Swizzle.B128),
            (Element.BF16, 0, (576, ROWS), (1152,), (64, 1)),
        ),
        (
            maps.gather4(FLAT, BASE, element=Element.I64),
            (Element.I64, 0, (72, ROWS), (576,), (72, 1)),
        ),
        (
            maps.gather4(ROPE, BASE, element=Element.I64, width=64),
            (Element.I64, 0, (64, ROWS), (640,), (64, 1)),
        ),
        (maps.rope_gather4(ROPE, BASE), (Element.BF16, 512, (64, ROWS), (640,), (64, 1))),
        (maps.rope_gather4(INLINE, BASE), (Element.BF16, 528, (64, ROWS), (656,), (64, 1))),
    ],
)
def test_what_a_map_describes(made, expected):
    """Element, offset in bytes, dims, strides in bytes and box of each constructor."""
    assert expected == described(made)


def test_padded_depth():
    """Heads are whole column blocks in shared memory; without a swizzle multiples of 16 bytes."""
    depths = [
        maps.padded_depth(Element.BF16, Swizzle.B128, 576),
        maps.padded_depth(Element.BF16, Swizzle.B128, 80),
        maps.padded_depth(Element.U8, Swizzle.B64, 656),
        maps.padded_depth(Element.BF16, Swizzle.NONE, 20),
    ]
    assert depths == [576, 128, 704, 24]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: maps.gather4(BF16, BASE),
            "kv.Paged: tensor map `gather4`: a box side must be 1 to 256 elements, not 576",
        ),
        (lambda: maps.tile(BF16, BASE, rows=16, swizzle=Swizzle.NONE), "to 256 .*, not 576"),
        (
            lambda: maps.tile(Storage(kind="Ragged", dtype=DType.BF16, head_size=64, page=900),
                              BASE, rows=512),
            "kv.Ragged: tensor map `tile`: a box side must be 1 to 256 elements, not 512",
        ),
        (lambda: maps.gather4(BF16, BASE + 8, swizzle=Swizzle.B128), "a multiple of 16 bytes, not"),
        (
            lambda: maps.scale_tile(
                Storage(kind="Ragged", dtype=DType.U8, heads=3, head_size=32, page=61),
                BASE, rows=32,
            ),
            "a stride must be a multiple of 16 bytes, not 244",
        ),
        (
            lambda: maps.tile(
                Storage(kind="Ragged", dtype=DType.BF16, head_size=20, page=61), BASE, rows=32
            ),
            "a stride must be a multiple of 16 bytes, not 40",
        ),
    ],
)  # fmt: skip
def test_rules_of_the_tma_unit(make, says):
    """Boxes, strides and addresses that it refuses are refused here, by storage and constructor."""
    with pytest.raises(TensorMapError, match=says):
        make()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: maps.tile(BF16, BASE, rows=24),
            "kv.Paged: `tile`: a tile of 24 rows needs pages that divide it or are a multiple",
        ),
        (
            lambda: maps.ragged_tile(BF16, BASE, rows=32),
            "kv.Paged: `ragged_tile`: 32 rows of mapped memory must lie before row 0, not 16",
        ),
        (
            lambda: maps.ragged_tile(TOTAL, BASE, rows=16),
            "kv.Ragged: `ragged_tile`: 16 rows of mapped memory must lie before row 0, not 0",
        ),
        (
            lambda: maps.rope_tile(FLAT, BASE, rows=16),
            "kv.Paged: `rope_tile`: fp8_576 rows have no rope of another type",
        ),
        (lambda: maps.rope_gather4(BF16, BASE), "`rope_gather4`: bf16_576 rows have no rope of"),
        (lambda: maps.rope_gather4(TOTAL, BASE), "kv.Ragged: `rope_gather4`: fp8_512 rows have no"),
    ],
)
def test_what_a_storage_cannot_give(make, says):
    """A constructor that a storage or row format does not have names both."""
    with pytest.raises(ProblemError, match=says):
        make()
