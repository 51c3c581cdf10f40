"""Outputs are a mean by the weights as they are multiplied: what all weights round by is not seen.

Weights are rounded to bf16, by up to 1/256 of themselves. Keys of one score round alike, and a
single key has no other to make up for it: divided by the sum of exact weights, a value would come
back 1/256 too large, which is more than FlashMLA's tests let pass.
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
