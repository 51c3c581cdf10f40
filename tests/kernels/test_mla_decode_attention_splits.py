"""Splits of keys join to what one split gives, on the emulator."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from kernelpack.kernels.kv_operand.rows import FORMATS
from kernelpack.kernels.mla_decode_attention.inputs import Case, Source, inputs
from kernelpack.kernels.mla_decode_combine import definition as combine
from kernelpack.kernels.mla_decode_combine.problem import Case as Joined
from kernelpack.kernels.mla_decode_combine.problem import Problem as Joining
from tests.kernels.emulated import outputs_of

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

MOST_ULP = 0.75
"""By how much the whole may differ from joined splits: half of it for its rounding to bf16.

Weights are rounded to bf16 too. They round alike, for the maxima that they refer to differ by
powers of two; by maxima that are not whole numbers, splits were up to 2.5 ulp apart. The rest is
for shares: those of splits are by exact weights, those of keys in a split by rounded ones.
"""
CASE = Case(name="t", t=1, h=8, source=Source(topk=800, page=64, blocks=16))
NUMBERS = (2, 3, 4, 6, 7, 8, 12, 17)
"""Splits of the case's 7 units: even and uneven shares, one unit for each, and some without any."""
BLACKWELL = ("sm_100a", "bf16_576", 64)
HOPPER = (("sm_90a", "bf16_576", 8), ("sm_90a", "bf16_576", 64), ("sm_90a", "fp8_656", 16))


@cache
def outputs(bundle, arch, row, heads, splits):
    """What a variant makes of the case."""
    begin = f"mla_decode_attention[arch={arch},row={row},scale_block=0,heads={heads}"
    case = replace(CASE, row=FORMATS[row], partitions=splits)
    return outputs_of(bundle, begin, case, inputs(case))


def joined(parts, splits):
    """Partial outputs as one, in float64."""
    problem = Joining(t=CASE.t, h=CASE.h, partitions=splits)
    return combine.expected(Joined(name="t", problem=problem), parts)["out"].value


@pytest.mark.parametrize(
    ("variant", "splits"),
    [(BLACKWELL, n) for n in NUMBERS] + [(v, n) for v in HOPPER for n in (2, 5)],
)
def test_splits_join_to_the_whole(bundle, variant, splits):
    """Within a rounding of each number, or of the average of its row where columns cancel."""
    whole = outputs(bundle, *variant, 1)["out"].astype(np.float64)
    parts = joined(outputs(bundle, *variant, splits), splits)
    size = np.maximum(np.abs(whole), np.sqrt((whole**2).mean(-1, keepdims=True)))
    ulp = np.exp2(np.floor(np.log2(size)) - 7)
    assert (np.abs(parts - whole) / ulp).max() <= MOST_ULP
