"""The combine as `run`, `verify` and the tests on a GPU see it: its cases and its oracle."""

from dataclasses import replace

import numpy as np

from kernelpack.formats.dtype import DType
from kernelpack.kernels import bounds
from kernelpack.kernels.definition import Arrays, Definition, Expected, beginning
from kernelpack.kernels.mla_decode_combine import problem
from kernelpack.kernels.mla_decode_combine.problem import ABIS, KERNEL, Case, Problem
from kernelpack.kernels.sparse_mla_prefill.problem import LOG2E
from kernelpack.kernels.sparse_mla_prefill.reference import LSE_ABSOLUTE, LSE_RELATIVE

_DOWN = float("-inf")
_SMALL: tuple[Case, ...] = (
    Case(name="telling_sinks", problem=Problem(t=2, h=7, partitions=5, sink=True)),
    Case(name="telling_many", problem=Problem(t=2, h=2, partitions=70, dead_lse=_DOWN)),
    Case(name="telling_one", problem=Problem(t=3, h=3, partitions=1, lse=False)),
    *(
        Case(name=f"partitions_{n}", problem=Problem(t=1, h=3, partitions=n), empty=0)
        for n in (1, 2, 7, 8, 9, 31, 32, 33, 64, 255, 256)
    ),
    Case(name="far_apart", problem=Problem(t=2, h=4, partitions=9), spread=100),
    Case(name="all_empty", problem=Problem(t=2, h=8, partitions=3, sink=True), empty=1),
)
_LARGE = (
    Case(name="batch_16", problem=Problem(t=16, h=128, partitions=8)),
    Case(name="few_heads", problem=Problem(t=8, h=8, partitions=16, sink=True)),
)
TELLING = 3


def cases() -> tuple[Case, ...]:
    """Every case to verify."""
    return tuple(replace(case, seed=seed) for seed, case in enumerate((*_SMALL, *_LARGE)))


def small() -> tuple[Case, ...]:
    """The cases of few bytes that still cover every rule."""
    return cases()[: len(_SMALL)]


def telling() -> tuple[Case, ...]:
    """The few cases that every variant is verified on."""
    return cases()[:TELLING]


def expected(case: Case, arrays: Arrays) -> dict[str, Expected]:
    """Out and lse in float64; a row without keys has out 0, whatever its sink."""
    given = case.problem
    sides = (given.partitions, given.t, given.h)
    lse = arrays["partial_lse"].reshape(sides).astype(np.float64)
    parts = arrays["partial_out"].reshape(*sides, -1).astype(np.float64)
    is_dead = np.isneginf(lse).all(0)
    most = np.where(is_dead, 0, lse.max(0))
    weights = np.exp2(lse - most)
    total = weights.sum(0)
    with np.errstate(over="ignore", divide="ignore"):
        sink = np.exp2(arrays["sink"] * LOG2E - most) if given.sink else 0.0
        of_all = np.where(is_dead, -np.inf, most + np.log2(total)) / LOG2E
    share = np.where(is_dead, 0, weights / np.where(is_dead, 1, total + sink))
    terms = share[..., None] * np.where(np.isneginf(lse)[..., None], 0, parts)
    value = terms.sum(0)
    out = Expected(value=value, bound=bounds.bound(value, np.abs(terms).sum(0), DType.BF16))
    if not given.lse:
        return {"out": out}
    of_all[is_dead] = given.dead_lse
    size = np.where(is_dead, 0, np.abs(of_all))
    return {
        "out": out,
        "lse": Expected(value=of_all, bound=np.maximum(LSE_ABSOLUTE, LSE_RELATIVE * size)),
    }


MLA_DECODE_COMBINE = Definition(
    stem=KERNEL,
    abis=ABIS,
    cases=cases,
    small=small,
    telling=telling,
    case=problem.case_of,
    emulated=problem.EMULATED,
    group=beginning("telling", "partitions"),
    inputs=problem.inputs,
    expected=expected,
)
