"""NaN in a token's q, or in a row of one of its splits."""

import numpy as np
import pytest

from kernelpack.formats.dtype import DType
from kernelpack.kernels.mla_decode_attention.inputs import Case, Source, inputs
from kernelpack.kernels.mla_decode_attention.reference import expected
from tests.kernels.emulated import outputs_of

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

SPLITS, TOKENS, HEADS, KEYS = 2, 3, 3, 130
CASE = Case(
    name="t", t=TOKENS, h=HEADS, partitions=SPLITS, source=Source(topk=KEYS, page=KEYS, blocks=3)
)
Q_NAN, ROW_NAN, CLEAN = range(TOKENS)

NOT_A_NUMBER = np.zeros((SPLITS, TOKENS, HEADS), bool)
NOT_A_NUMBER[:, Q_NAN, 1] = True
NOT_A_NUMBER[1, ROW_NAN] = True


def arrays():
    """Tokens attend to rows of their own; the NaN of one is in its last, which is of split 1."""
    made = inputs(CASE)
    entries = np.arange(TOKENS * KEYS, dtype=np.int32)
    random = np.random.default_rng(1)
    q = random.standard_normal((TOKENS, HEADS, 576)).astype(DType.BF16.numpy)
    rows = random.standard_normal((TOKENS * KEYS, 576)).astype(np.float32) / 10
    q[Q_NAN, 1, 575] = np.nan
    rows[(ROW_NAN + 1) * KEYS - 1, 20] = np.nan
    kv = rows.astype(DType.BF16.numpy).view(np.uint8)
    return made | {"q": q.reshape(-1), "kv": kv, "indices": entries}


@pytest.mark.parametrize(("arch", "heads"), [("sm_100a", 64), ("sm_90a", 8)])
def test_what_is_no_number_is_none_in_its_splits_alone(bundle, arch, heads):
    """Partial outputs and lse are NaN where the oracle has it, and right elsewhere."""
    begin = f"mla_decode_attention[arch={arch},row=bf16_576,scale_block=0,heads={heads}"
    given = arrays()
    found = outputs_of(bundle, begin, CASE, given)
    right = expected(CASE.problem, given)
    for name in ("partial_out", "partial_lse"):
        is_nan = np.isnan(found[name].astype(np.float64))
        wide = NOT_A_NUMBER.reshape(NOT_A_NUMBER.shape + (1,) * (is_nan.ndim - 3))
        assert (is_nan == wide).all(), name
        assert right[name].ratio(found[name])[~is_nan].max() <= 1, name
