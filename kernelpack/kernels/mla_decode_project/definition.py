"""The projection after decode attention as `run`, `verify` and the tests on a GPU see it."""

import numpy as np

from kernelpack.kernels.block_scaled.reference import Weights, product
from kernelpack.kernels.definition import Arrays, Definition, Expected, beginning
from kernelpack.kernels.kv_operand.rows import LATENT
from kernelpack.kernels.mla_decode_project.cases import (
    EMULATED,
    Case,
    case_of,
    cases,
    inputs,
    small,
    telling,
)
from kernelpack.kernels.mla_decode_project.problem import ABIS, KERNEL


def _expected(case: Case, arrays: Arrays) -> dict[str, Expected]:
    """The output, by the oracle of block-scaled products."""
    problem, x = case.problem, arrays["x"]
    steps = (problem.x_token_stride, problem.x_head_stride, 1)
    strides = tuple(step * x.itemsize for step in steps)
    apart = np.lib.stride_tricks.as_strided(x, (case.t, case.h, LATENT), strides)
    return {"out": product(apart, Weights.of(arrays["w_uv"], arrays["w_uv_scale"]))}


MLA_DECODE_PROJECT = Definition(
    stem=KERNEL,
    abis=ABIS,
    cases=cases,
    small=small,
    telling=telling,
    case=case_of,
    emulated=EMULATED,
    group=beginning("telling", "heads", "tokens"),
    inputs=inputs,
    expected=_expected,
)
