"""The C ABI's layout of a signature."""

import pytest

from kernelpack.formats.dtype import DType
from kernelpack.spec.expr import ONE
from kernelpack.spec.params import (
    MapParam,
    PointerParam,
    ScalarParam,
    Slot,
    block_bytes,
    layout,
)
from kernelpack.spec.tensormap import Element, TensorMapSpec

POINTER = PointerParam(name="p", argument="a")
MAP = MapParam(
    name="t",
    map=TensorMapSpec(
        name="t", argument="a", element=Element.U8, dims=(ONE,), strides_bytes=(), box=(ONE,)
    ),
)


def scalar(label: str) -> ScalarParam:
    return ScalarParam(name="s", dtype=DType.parse(label), value=ONE)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ([], []),
        ([POINTER], [(0, 8)]),
        ([scalar("u32"), POINTER], [(0, 4), (8, 8)]),
        ([POINTER, scalar("u32"), scalar("u32")], [(0, 8), (8, 4), (12, 4)]),
        ([scalar("u8"), scalar("u16"), scalar("u64")], [(0, 1), (2, 2), (8, 8)]),
        ([MAP, MAP, POINTER], [(0, 128), (128, 128), (256, 8)]),
        ([POINTER, MAP], [(0, 8), (64, 128)]),
    ],
)
def test_layout(params, expected):
    """A parameter begins at the next multiple of its own alignment; a map's is 64 bytes."""
    assert [Slot(*slot) for slot in expected] == list(layout(params))


@pytest.mark.parametrize(
    ("params", "expected"), [([], 0), ([POINTER, scalar("u32")], 12), ([POINTER, MAP], 192)]
)
def test_block_bytes(params, expected):
    """The block ends with its last parameter."""
    assert expected == block_bytes(layout(params))
