"""Tensor copies against plain numpy indexing, PTX ISA 9.1, 5.5."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpack.emulator.models import tma
from kernelpack.emulator.models.fault import UnitFault
from kernelpack.errors import UnsupportedError
from kernelpack.spec.tensormap import BITS, Element, Fill, Interleave, Swizzle, TensorMap

BASE = 0x7000_0000


def tensor_map(element=Element.U16, dims=(64, 10), box=(8, 4), **rest):
    strides = np.cumprod([dims[0] * BITS[element] // 8, *dims[1:]])[:-1]
    fields = {
        "name": "t",
        "element": element,
        "address": BASE,
        "dims": dims,
        "strides_bytes": tuple(int(s) for s in strides),
        "box": box,
        "element_strides": (1,) * len(dims),
    }
    return TensorMap(**(fields | rest))


def load(plan, memory, size=4096):
    """Do what the machine does: fill, read the inside, write shared memory."""
    data = plan.fill.copy()
    data[plan.inside] = memory[plan.remote - BASE]
    shared = np.full(size, 0xEE, np.uint8)
    shared[plan.shared] = data
    return shared


@settings(max_examples=60, deadline=None)
@given(data=st.data(), rank=st.integers(1, 5))
def test_tile_is_a_slice(data, rank):
    """Whatever rank and coordinates, the box is the slice, with zeros outside."""
    dims = (16, *data.draw(st.tuples(*[st.integers(1, 5)] * (rank - 1))))
    box = (8, *data.draw(st.tuples(*[st.integers(1, 4)] * (rank - 1))))
    column = 8 * data.draw(st.integers(-2, 3))
    starts = (column, *data.draw(st.tuples(*[st.integers(-6, 8)] * (rank - 1))))
    tensor = np.arange(1, 1 + np.prod(dims), dtype=np.uint16).reshape(dims[::-1])
    indices = [s + np.arange(b) for s, b in zip(starts, box, strict=True)][::-1]
    inside = [(i >= 0) & (i < d) for i, d in zip(indices, tensor.shape, strict=True)]
    nearest = [i.clip(0, d - 1) for i, d in zip(indices, tensor.shape, strict=True)]
    mask = functools.reduce(np.logical_and.outer, inside)
    expected = np.where(mask, tensor[np.ix_(*nearest)], 0).astype(np.uint16).ravel()
    plan = tma.tile(tensor_map(dims=dims, box=box), starts, 0)
    assert np.array_equal(
        expected, load(plan, tensor.view(np.uint8).ravel())[: expected.nbytes].view(np.uint16)
    )


@pytest.mark.parametrize("swizzle", [s for s in Swizzle if s.name.startswith("B128")])
def test_swizzled_tile_is_a_permutation(swizzle):
    """A swizzled box as wide as its pattern fills the same bytes, each once."""
    plan = tma.tile(tensor_map(dims=(64, 64), box=(64, 16), swizzle=swizzle), (0, 0), 2048)
    assert np.array_equal(2048 + np.arange(2048), np.sort(plan.shared))


@pytest.mark.parametrize(
    ("swizzle", "pitch"), [(Swizzle.B32, 32), (Swizzle.B64, 64), (Swizzle.B128, 128)]
)
def test_short_rows_start_lines(swizzle, pitch):
    """With a swizzle each row starts at its own span, as measured on an H200."""
    plan = tma.tile(tensor_map(box=(8, 4), swizzle=swizzle), (0, 0), 0)
    assert (plan.shared.reshape(4, 16)[:, 0] // pitch).tolist() == [0, 1, 2, 3]
    assert plan.tx_bytes == 64


def test_short_rows_are_dense_without_swizzle():
    """Without a swizzle rows follow each other."""
    plan = tma.tile(tensor_map(box=(8, 4)), (0, 0), 0)
    assert np.array_equal(np.arange(64), plan.shared)


def test_swizzle_128():
    """Row r of a 128-byte box has its 16-byte chunks exclusive-ored with r % 8."""
    plan = tma.tile(tensor_map(dims=(64, 16), box=(64, 16), swizzle=Swizzle.B128), (0, 0), 1024)
    chunks = (plan.shared.reshape(16, 8, 16)[..., 0] - 1024) % 128 // 16
    assert np.array_equal(np.arange(8) ^ (np.arange(16) % 8)[:, None], chunks)


@pytest.mark.parametrize("element", [Element.BF16, Element.FP16, Element.FP32, Element.FP64])
def test_nan_fill(element):
    """Outside bytes are NaN where the map asks for it: 0x7ff7 in every 16 bits, as measured."""
    plan = tma.tile(tensor_map(element, box=(8, 1), fill=Fill.NAN), (-8, 0), 0)
    assert set(plan.fill.view(np.uint16).tolist()) == {0x7FF7}
    assert not plan.inside.any()


def test_outside_counts():
    """A box that hangs over is counted whole."""
    plan = tma.tile(tensor_map(dims=(60, 10), box=(8, 4), strides_bytes=(128,)), (56, 8), 0)
    assert (plan.tx_bytes, len(plan.remote)) == (64, 2 * 4 * 2)


def test_element_strides():
    """A traversal stride of 2 takes every second row, half as many."""
    plan = tma.tile(tensor_map(box=(8, 4), element_strides=(1, 2)), (0, 1), 0)
    assert ((plan.remote - BASE) // 128).reshape(2, 16)[:, 0].tolist() == [1, 3]


@pytest.mark.parametrize(
    ("element", "data_bytes"), [(Element.U4_ALIGN16, 8), (Element.U6_ALIGN16, 12)]
)
def test_padded_types(element, data_bytes):
    """Sixteen elements take 16 bytes of shared memory; only packed bytes are counted."""
    plan = tma.tile(tensor_map(element, dims=(128, 4), box=(128, 2)), (0, 0), 0)
    assert plan.tx_bytes == 2 * 8 * data_bytes
    assert plan.shared[:data_bytes].tolist() == list(range(data_bytes))
    assert plan.shared[data_bytes] == 16


def test_dense_nibbles():
    """Dense FP4 is bytes like any other."""
    plan = tma.tile(tensor_map(Element.U4_ALIGN8, dims=(64, 4), box=(32, 2)), (32, 1), 0)
    assert (plan.remote - BASE).tolist() == [*range(48, 64), *range(80, 96)]


def test_gather4():
    """Four rows in the order of the operands, rows outside filled."""
    plan = tma.gather4(tensor_map(box=(8, 1)), 8, (9, -1, 0, 1 << 31), 128)
    assert plan.inside.reshape(4, 16).all(1).tolist() == [True, False, True, False]
    assert ((plan.remote - BASE) // 128).reshape(2, 16)[:, 0].tolist() == [9, 0]
    assert plan.tx_bytes == 64


@pytest.mark.parametrize("change", [{"box": (8, 2)}, {"dims": (64, 4, 4), "box": (8, 1, 1)}])
def test_gather4_needs_rows(change):
    """gather4 wants a 2D map with boxes of one row."""
    with pytest.raises(UnitFault, match="boxes of one row"):
        tma.gather4(tensor_map(**change), 0, (0, 1, 2, 3), 0)


def test_alignment():
    """The shared address is a multiple of 128."""
    with pytest.raises(UnitFault, match="multiple of 128"):
        tma.tile(tensor_map(), (0, 0), 64)


def test_rank():
    """As many coordinates as dimensions."""
    with pytest.raises(UnitFault, match="3 coordinates"):
        tma.tile(tensor_map(), (0, 0, 0), 0)


@pytest.mark.parametrize(
    ("element", "column"),
    [(Element.U16, 4), (Element.FP32, 2), (Element.U64, 1), (Element.U4_ALIGN8, 16)],
)
def test_column_alignment(element, column):
    """A box starts at a multiple of 16 bytes: an H200 traps otherwise."""
    with pytest.raises(UnitFault, match="multiple of 16"):
        tma.tile(tensor_map(element, dims=(64, 4), box=(32, 2)), (column, 0), 0)


def test_interleaved_maps_are_not_modelled():
    """What would need a guess is refused."""
    with pytest.raises(UnsupportedError, match="not modelled"):
        tma.tile(tensor_map(interleave=Interleave.B16), (0, 0), 0)


@pytest.mark.parametrize("element", [Element.U6_ALIGN16, Element.TF32])
def test_not_stored(element):
    """The store direction of padded and rounding types is refused."""
    with pytest.raises(UnsupportedError, match=element.name):
        tma.check_storable(tensor_map(element, dims=(128, 4), box=(128, 2)))


def test_negative_store():
    """A store that starts below 0 traps on an H200, though a load is clipped."""
    with pytest.raises(UnitFault, match="below 0"):
        tma.check_store_start(tensor_map(), (0, -1))


def test_store():
    """Everything else can be stored; the far end is clipped."""
    tma.check_storable(tensor_map())
    tma.check_store_start(tensor_map(), (0, 9))


@pytest.mark.parametrize(
    ("element", "expected"), [(Element.TF32, 0x40A8_4000), (Element.FP32_FTZ, 0x40A8_394D)]
)
def test_rounding_of_loads(element, expected):
    """tf32 is rounded to nearest on its way in; ftz types are not touched (measured)."""
    data = np.uint32([0x40A8_394D]).view(np.uint8)
    assert tma.rounded(tensor_map(element), data).view(np.uint32) == expected


@pytest.mark.parametrize("sizes", [(8, 0, 16), (0, 4, 16), (0, 0, 24)])
def test_bulk_alignment(sizes):
    """Bulk copies move multiples of 16 bytes between multiples of 16."""
    with pytest.raises(UnitFault, match="multiples of 16"):
        tma.check_bulk(*sizes)


def test_copies_larger_than_any_memory():
    """What is far too large is refused before its bytes are counted out."""
    with pytest.raises(UnitFault, match="268435456 bytes"):
        tma.check_bulk(0, BASE, 1 << 28)
    with pytest.raises(UnitFault, match="16777216 elements"):
        tma.tile(tensor_map(dims=(512, 512, 512), box=(256, 256, 256)), (0, 0, 0), 0)


def test_bulk_aligned():
    """An aligned bulk copy is accepted."""
    tma.check_bulk(16, 32, 48)
