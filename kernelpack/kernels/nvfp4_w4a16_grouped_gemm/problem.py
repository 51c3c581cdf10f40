"""Cases of the grouped GEMM of bf16 tokens and NVFP4 weights, and inputs made from a seed."""

from collections.abc import Mapping

import numpy as np

from kernelpack.formats.dtype import DType
from kernelpack.kernels.definition import Arrays
from kernelpack.kernels.nvfp4 import problem
from kernelpack.kernels.nvfp4.inputs import groups, weights
from kernelpack.kernels.nvfp4.problem import Case

KERNEL = "nvfp4_w4a16_grouped_gemm"
ABIS = range(2, 3)
"""The kernel-ABI numbers this version can call."""

LARGEST = 6 * 448.0  # a token like the largest weight
PRODUCT_BITS = 8  # of a token times a weight, as made here


def inputs(case: Case) -> Arrays:
    """Arrays of a case, by the names of the manifest's arguments."""
    random = np.random.default_rng(case.seed)
    a = random.standard_normal((sum(case.tokens), case.k), dtype=np.float32)
    if case.is_largest:
        a[:] = LARGEST
    return {
        "a": a.astype(DType.BF16.numpy),
        **weights(random, case),
        **steering(case),
    }


def steering(case: Case) -> Arrays:
    """The groups of a case."""
    return groups(case, PRODUCT_BITS)


def case_of(sizes: Mapping[str, str]) -> Case:
    """A case from typed sizes: `t n k e n_active out_dtype seed`.

    Raises:
        ProblemError: as of `nvfp4.problem.case_of`.

    """
    return problem.case_of(Case, KERNEL, sizes)
