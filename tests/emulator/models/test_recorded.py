"""The models give what an H200 gave, bit for bit (see recorded/README.md)."""

import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from kernelpack.emulator.models import mma, mma_sync, reduction, tma, wgmma
from kernelpack.emulator.models.mma_descriptor import operand_addresses, wgmma_descriptor
from kernelpack.formats.convert import cvt
from kernelpack.formats.dtype import DType
from kernelpack.spec.tensormap import Element, Fill, Swizzle, TensorMap

RECORDED = np.load(Path(__file__).parent / "recorded" / "h200.npz")
INDEX = json.loads(RECORDED["index"].tobytes())


def typed(fields):
    return {key: DType.parse(v) if isinstance(v, str) else v for key, v in fields.items()}


@pytest.mark.parametrize("name", INDEX["mma_sync"])
def test_mma_sync(name):
    """Every dense form of mma.sync in exact arithmetic."""
    shape = mma_sync.MmaSyncShape(**typed(INDEX["mma_sync"][name]))
    a, b, c, d = (RECORDED[f"mma_sync/{name}/{operand}"] for operand in "abcd")
    results = [mma_sync.multiply(shape, *o, mma.exact) for o in zip(a, b, c, strict=True)]
    assert np.array_equal(d, results)


@pytest.mark.parametrize("name", INDEX["wgmma"])
def test_wgmma(name):
    """Every type of wgmma in exact arithmetic."""
    shape = wgmma.WgmmaShape(**typed(INDEX["wgmma"][name]))
    a, b, c, d = (RECORDED[f"wgmma/{name}/{operand}"] for operand in "abcd")
    results = [
        wgmma.multiply(shape, wgmma.a_from_bytes(shape, x), y, z, mma.exact)
        for x, y, z in zip(a, b, c, strict=True)
    ]
    assert np.array_equal(d, results)


@pytest.mark.parametrize("test", range(16))
@pytest.mark.parametrize("major", INDEX["addresses"])
def test_descriptors(major, test):
    """Random strides, swizzles, start addresses and base offsets read the same bytes."""
    known = INDEX["addresses"][major]
    how = {"mn_major": major == "mn_major", "k": 16, "bits": 16}
    image, c, d = (RECORDED[f"addresses/{major}/{part}"] for part in ("image", "c", "d"))
    raw = [int(RECORDED[f"addresses/{major}/{side}_descriptor"][test]) for side in "ab"]
    a = operand_addresses(wgmma_descriptor(raw[0]), rows=16, **how) - known["base"]
    b = operand_addresses(wgmma_descriptor(raw[1]), rows=32, **how) - known["base"]
    shape = wgmma.WgmmaShape(
        n=32, a=DType.BF16, b=DType.BF16, d=DType.FP32, negate_b=known["negate_b"]
    )
    registers = np.zeros((16, 32), np.uint32)
    registers[:4] = c[test]
    result = wgmma.multiply(
        shape, wgmma.a_from_bytes(shape, image[a]), image[b], registers, mma.exact
    )
    assert np.array_equal(d[test], result[:4])


@pytest.mark.parametrize("number", range(len(INDEX["cvt"])))
def test_cvt(number):
    """Every float conversion of sm_90a, NaN included."""
    form = dict(INDEX["cvt"][number])
    inputs = [RECORDED[f"cvt/{name}"] for name in form.pop("inputs")]
    result = cvt(form.pop("to"), form.pop("source"), inputs, **form)
    assert np.array_equal(RECORDED[f"cvt/{number}"], result)


@pytest.mark.parametrize("number", range(len(INDEX["tensor_copies"])))
def test_tcgen05_cp(number):
    """Shared memory after a tensor load: every swizzle, rank, type, stride and edge."""
    known = INDEX["tensor_copies"][number]
    tensor_map = TensorMap(
        name="recorded",
        element=Element[known["element"]],
        address=0,
        swizzle=Swizzle[known["swizzle"]],
        fill=Fill[known["fill"]],
        **{key: tuple(known[key]) for key in ("dims", "strides_bytes", "box", "element_strides")},
    )
    plan = tma.tile(tensor_map, known["coordinates"], known["shared"])
    data = plan.fill.copy()
    data[plan.inside] = tma.rounded(tensor_map, RECORDED["tensor_copies/memory"][plan.remote])
    shared = np.full(1 << 15, 0xEE, np.uint8)
    shared[plan.shared - 1024] = data
    assert known["tx"] == plan.tx_bytes
    assert known["crc"] == zlib.crc32(shared.tobytes())


@pytest.mark.parametrize(("operation", "element"), INDEX["reductions"])
def test_reduction(operation, element):
    """Every tensor reduction that sm_90a has for the recorded types."""
    old, new, result = (
        RECORDED[f"reductions/{operation}-{element}/{part}"] for part in ("old", "new", "result")
    )
    assert np.array_equal(result, reduction.reduce(operation, Element[element], old, new))
