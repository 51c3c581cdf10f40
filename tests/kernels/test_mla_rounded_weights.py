"""Outputs are a mean by the weights as they are multiplied: what all weights round by is not seen.

Weights are rounded to bf16, by up to 1/256 of themselves. Keys of one score round alike, and a
single key has no other to make up for it: divided by the sum of exact weights, a value would come
back 1/256 too large, which is more than FlashMLA's tests let pass. Of few keys, the one that weighs
most counts as 1 in sparse MLA prefill, so that it has no rounding either.
"""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.rows import FORMATS
from kernelpack.kernels.mla_decode_attention.inputs import Case as DecodeCase
from kernelpack.kernels.mla_decode_attention.inputs import Source
from kernelpack.kernels.mla_decode_attention.inputs import inputs as decode_inputs
from kernelpack.kernels.sparse_mla_prefill.inputs import Case as PrefillCase
from kernelpack.kernels.sparse_mla_prefill.inputs import inputs as prefill_inputs
from tests.kernels.emulated import outputs_of

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

DECODE = DecodeCase(name="t", t=1, h=8, source=Source(topk=70, blocks=4))
PREFILL = PrefillCase(name="t", t=1, h=8, topk=70, blocks=4)
LATENT = 512
ROW = 37
TILES = (("sm_100a", 64), ("sm_100a", 128), ("sm_90a", 8), ("sm_90a", 64))


def made(bundle, op, arch, heads, indices):
    """The outputs of the only row that the entries name, and that row's value."""
    case, make = (DECODE, decode_inputs) if op == "decode" else (PREFILL, prefill_inputs)
    case = replace(case, row=FORMATS["bf16_576"])
    name = "mla_decode_attention" if op == "decode" else "sparse_mla_prefill"
    arrays = make(case)
    arrays["indices"][:] = indices
    begin = f"{name}[arch={arch},row=bf16_576,scale_block=0,heads={heads}"
    out = outputs_of(bundle, begin, case, arrays)["out"].astype(np.float32)
    value = arrays["kv"].view(DType.BF16.numpy).reshape(-1, 576)[ROW, :LATENT]
    return out.reshape(-1, LATENT), value.astype(np.float32)


@pytest.mark.parametrize(("op", "keys"), [("decode", 70), ("prefill", 1)])
@pytest.mark.parametrize(("arch", "heads"), TILES)
def test_the_value_of_a_single_row_comes_back_to_the_bit(bundle, op, arch, heads, keys):
    """Whether one entry names it or all do, whatever the heads' scores of it are."""
    entries = np.where(np.arange(70) < keys, ROW, -1)
    out, value = made(bundle, op, arch, heads, entries)
    assert len(out) == 8
    np.testing.assert_array_equal(out, np.broadcast_to(value, out.shape))


TWO = PrefillCase(name="t", t=8, h=8, topk=2, blocks=4, scale=0.5)


@pytest.mark.parametrize(("arch", "heads"), TILES)
def test_of_two_keys_one_is_rounded(bundle, arch, heads):
    """An output is off by no more than the lesser weight's half ulp of bf16, and its own."""
    case = replace(TWO, row=FORMATS["bf16_576"])
    arrays = prefill_inputs(case)
    pair = arrays["indices"].reshape(8, -1)[0, :2]
    arrays["indices"] = np.resize(pair, arrays["indices"].shape)
    begin = f"sparse_mla_prefill[arch={arch},row=bf16_576,scale_block=0,heads={heads}"
    found = outputs_of(bundle, begin, case, arrays)["out"].astype(np.float64).reshape(64, LATENT)
    q = arrays["q"].astype(np.float64).reshape(64, 576)
    rows = arrays["kv"].view(DType.BF16.numpy).reshape(-1, 576)[pair].astype(np.float64)
    lesser, greater = np.sort(case.scale * q @ rows.T, axis=1).T
    order = np.argsort(q @ rows.T, axis=1)
    values = rows[order, :LATENT]  # of the lesser key, then of the greater
    weight = np.exp(lesser - greater)[:, None]
    exact = (weight * values[:, 0] + values[:, 1]) / (1 + weight)
    half_ulp = np.exp2(np.floor(np.log2(weight)) - 8) * 1.01
    off = half_ulp * np.abs(values[:, 0] - values[:, 1]) / (1 + weight) ** 2
    rounding = np.exp2(np.floor(np.log2(np.abs(exact) + off)) - 8)
    assert (np.abs(found - exact) <= off + rounding).all()
