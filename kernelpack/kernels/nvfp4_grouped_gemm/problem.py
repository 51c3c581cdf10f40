"""Cases of the NVFP4 grouped GEMM, and inputs made from a seed.

Tokens are codes and scales like weights. A group's scales begin a fresh block of 128 rows of the
scale tensor, at block `group_offsets[g] // 128 + group_scale_offsets[g]`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernelpack.formats.grouped_scales import (
    group_scale_offsets,
    interleave,
    scale_blocks,
    scale_rows,
)
from kernelpack.formats.scale_layout import ROWS
from kernelpack.kernels.definition import Arrays
from kernelpack.kernels.nvfp4 import problem
from kernelpack.kernels.nvfp4.inputs import (
    LARGEST_SCALE,
    NAN,
    Bytes,
    Random,
    codes,
    groups,
    weights,
)
from kernelpack.kernels.nvfp4.problem import BLOCK

KERNEL = "nvfp4_grouped_gemm"
ABIS = range(2, 3)
"""The kernel-ABI numbers this version can call."""

POWERS = (0x38, 0x40, 0x48)  # scales of tokens: 1, 2, 4
PRODUCT_BITS = 11  # of a code and scale of a token times those of a weight, as made here


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(problem.Case):
    """A case whose tokens have scales."""

    spare_blocks: int = 0  # row blocks of a's scales that no group owns; they hold NaN

    @property
    def scale_blocks(self) -> int:
        """Row blocks of a's scales."""
        return scale_blocks(self.offsets) + self.spare_blocks


def inputs(case: Case) -> Arrays:
    """Arrays of a case, by the names of the manifest's arguments."""
    random = np.random.default_rng(case.seed)
    return {
        "a": codes(random, case, sum(case.tokens)),
        "a_scales": _token_scales(random, case),
        **weights(random, case),
        **steering(case),
    }


def steering(case: Case) -> Arrays:
    """The groups of a case, and where their scales begin."""
    offsets = group_scale_offsets(case.offsets)
    return {"group_scale_offsets": offsets, **groups(case, PRODUCT_BITS)}


def _token_scales(random: Random, case: Case) -> Bytes:
    """Scales [scale_blocks, ceil(k / 64), 32, 4, 4] of the tokens, NaN in rows of no token."""
    blocks = case.k // BLOCK
    scales = random.choice(np.array(POWERS, np.uint8), (sum(case.tokens), blocks))
    if case.is_largest:
        scales[:] = LARGEST_SCALE
    rows = np.full((case.scale_blocks * ROWS, blocks), NAN, np.uint8)
    rows[scale_rows(case.offsets)] = scales
    tensor: Bytes = interleave(rows)
    return tensor


def case_of(sizes: Mapping[str, str]) -> Case:
    """A case from typed sizes: `t n k e n_active out_dtype seed`.

    Raises:
        ProblemError: as of `nvfp4.problem.case_of`.

    """
    return problem.case_of(Case, KERNEL, sizes)
