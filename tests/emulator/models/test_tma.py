"""Tensor copies against plain numpy indexing, PTX ISA 9.1, 5.5."""

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
    starts = data.draw(st.tuples(*[st.integers(-6, 18)] * rank))
    tensor = np.arange(1, 1 + np.prod(dims), dtype=np.uint16).reshape(dims[::-1])
    margin = [(20, 20)] * rank
    window = tuple(slice(20 + s, 20 + s + b) for s, b in zip(starts, box, strict=True))
    expected = np.pad(tensor, margin)[window[::-1]].ravel()
    plan = tma.tile(tensor_map(dims=dims, box=box), starts, 0)
    assert np.array_equal(
        expected, load(plan, tensor.view(np.uint8).ravel())[: expected.nbytes].view(np.uint16)
    )


@pytest.mark.parametrize("swizzle", list(Swizzle))
def test_swizzled_tile_is_a_permutation(swizzle):
    """A swizzled box fills the same bytes, each once."""
    plan = tma.tile(tensor_map(dims=(64, 64), box=(16, 64), swizzle=swizzle), (0, 0), 2048)
    assert np.array_equal(2048 + np.arange(2048), np.sort(plan.shared))


def test_swizzle_128():
    """Row r of a 128-byte box has its 16-byte chunks exclusive-ored with r % 8."""
    plan = tma.tile(tensor_map(dims=(64, 16), box=(64, 16), swizzle=Swizzle.B128), (0, 0), 1024)
    chunks = (plan.shared.reshape(16, 8, 16)[..., 0] - 1024) % 128 // 16
    assert np.array_equal(np.arange(8) ^ (np.arange(16) % 8)[:, None], chunks)


@pytest.mark.parametrize(
    ("element", "pattern"),
    [
        (Element.BF16, [0xFF, 0x7F]),
        (Element.FP16, [0xFF, 0x7F]),
        (Element.FP32, [0xFF, 0xFF, 0xFF, 0x7F]),
        (Element.FP64, [*[0xFF] * 7, 0x7F]),
    ],
)
def test_nan_fill(element, pattern):
    """Outside bytes are NaN where the map asks for it."""
    plan = tma.tile(tensor_map(element, box=(8, 1), fill=Fill.NAN), (-8, 0), 0)
    assert plan.fill[: len(pattern)].tolist() == pattern
    assert not plan.inside.any()


def test_outside_counts():
    """A box that hangs over is counted whole."""
    plan = tma.tile(tensor_map(box=(8, 4)), (60, 8), 0)
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


def test_odd_nibble():
    """A box cannot start inside a byte."""
    with pytest.raises(UnitFault, match="middle of a byte"):
        tma.tile(tensor_map(Element.U4_ALIGN8, dims=(64, 4), box=(32, 2)), (1, 0), 0)


@pytest.mark.parametrize("change", [{"interleave": Interleave.B16}, {"element": Element.TF32}])
def test_not_modelled(change):
    """What would need a guess is refused."""
    with pytest.raises(UnsupportedError, match="not modelled"):
        tma.tile(tensor_map(**change), (0, 0), 0)


def test_padded_types_are_not_stored():
    """The store direction of a padded type is refused."""
    with pytest.raises(UnsupportedError, match="padded"):
        tma.check_storable(tensor_map(Element.U6_ALIGN16, dims=(128, 4), box=(128, 2)))


def test_plain_types_are_stored():
    """Everything else can be stored."""
    tma.check_storable(tensor_map())


@pytest.mark.parametrize("sizes", [(8, 0, 16), (0, 4, 16), (0, 0, 24)])
def test_bulk_alignment(sizes):
    """Bulk copies move multiples of 16 bytes between multiples of 16."""
    with pytest.raises(UnitFault, match="multiples of 16"):
        tma.check_bulk(*sizes)


def test_bulk_aligned():
    """An aligned bulk copy is accepted."""
    tma.check_bulk(16, 32, 48)
