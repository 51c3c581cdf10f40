"""The kernels that faults are seeded into: a GEMM of our own, and kernels as they are shipped."""

from collections.abc import Mapping

import numpy as np

from kernelpack.formats.dtype import DType
from kernelpack.kernels.definition import Arrays, Expected
from kernelpack.kernels.lora_shrink_qkv import reference
from kernelpack.kernels.lora_shrink_qkv.problem import Case, inputs
from kernelpack.kernels.nvfp4_grouped_gemm import problem as nvfp4
from kernelpack.kernels.nvfp4_grouped_gemm import reference as nvfp4_reference
from tests.mutation.attention import ATTENTION
from tests.mutation.subject import HERE, ROOT, Subject

Axes = Mapping[str, int | str]


def _short(arch: str) -> str:
    """`sm_100a` → `sm100`, as in names of files."""
    return arch.removesuffix("a").replace("_", "")


def _gemm_inputs(m: int, k: int) -> Arrays:
    """Small integers: every sum is exact, the scores even in bf16."""
    random = np.random.default_rng(1)
    kind = DType.BF16.numpy
    return {
        "a": random.integers(-1, 2, (m, k)).astype(kind),
        "b": random.integers(-1, 2, (64, k)).astype(kind),
        "c": random.integers(-4, 5, (64, 64)).astype(kind),
    }


def _gemm_expected(arrays: Arrays) -> Mapping[str, Expected]:
    a, b, c = (arrays[name].astype(np.float64) for name in "abc")
    value = a @ b.T @ c.T
    return {"d": Expected(value=value, bound=np.zeros_like(value))}


def _gemm(arch: str, *, rows: int, warps: int) -> Subject:
    """Four tiles of five blocks on two CTAs: every ring turns, and ends at another stage."""
    m, k = 4 * rows, 320
    return Subject(
        name=f"gemm_{_short(arch)}",
        doc="Two chained products of our own, four tiles of five blocks on two CTAs.",
        manifest=HERE / "gemm.yaml",
        arch=arch,
        axes={},
        sizes={"m": m, "k": k, "sm_count": 2},
        arrays=lambda: _gemm_inputs(m, k),
        oracle=_gemm_expected,
        warps=warps,
    )


def _lora(
    name: str,
    doc: str,
    *,
    arch: str,
    case: Case,
    axes: Axes,
    warps: int,
    split: int = 1,
    multicast: int = 1,
) -> Subject:
    """LoRA shrink with few stages on two CTAs or clusters of two: every ring turns."""
    return Subject(
        name=f"lora_{_short(arch)}_{name}",
        doc=doc,
        manifest=ROOT / "manifests" / "lora_shrink_qkv.yaml",
        arch=arch,
        axes={"DTYPE": "bf16", "OUT": "fp32", **axes},
        sizes=case.sizes | {"sm_count": 148},
        arrays=lambda: inputs(case),
        oracle=lambda arrays: {"c": reference.expected(arrays, case.problem.m, DType.FP32)},
        caps={"STAGES": 3, "deepest": split, "clusters": 2 // multicast},
        warps=warps,
        cluster=split * multicast,
    )


def _nvfp4(
    name: str,
    doc: str,
    tokens: tuple[int, ...],
    axes: Axes,
    *,
    ids: tuple[int, ...] = (1, 0, 2, -1),
    n: int,
    clusters: int,
    ctas: int = 1,
    arch: str = "sm_100a",
    warps: int = 6,
    stages: int = 2,
) -> Subject:
    """NVFP4 experts with few stages, on two CTAs: every ring turns, K ends within a stage."""
    out = DType.BF16 if axes.get("OUT") == "bf16" else DType.FP32
    case = nvfp4.Case(name="mutation", e=3, n=n, k=544, tokens=tokens, ids=ids, out_dtype=out)
    return Subject(
        name=f"nvfp4_{_short(arch)}_{name}",
        doc=doc,
        manifest=ROOT / "manifests" / "nvfp4_grouped_gemm.yaml",
        arch=arch,
        axes={"OUT": "fp32", "ROWS": "weights", **axes},
        sizes=case.sizes | {"sm_count": 148},
        arrays=lambda: nvfp4.inputs(case),
        oracle=lambda arrays: {"c": nvfp4_reference.expected(arrays, out)},
        caps={"STAGES": stages, "clusters": clusters},
        warps=warps,
        cluster=ctas,
    )


def _case(n: int, k: int, tokens: tuple[int, ...], ids: tuple[int, ...]) -> Case:
    return Case(name="mutation", g=3, n=n, k=k, tokens=tokens, ids=ids, out_dtype=DType.FP32)


_GROUPS = _case(72, 264, (9, 0, 70, 3, 5), (1, 0, 2, -1, 1))
_FEW_TOKENS = _case(48, 520, (9, 0, 4, 3), (2, 0, 1, -1))
_MANY_TOKENS = _case(24, 384, (190, 70), (0, 2))
_SHARES_K = "Two CTAs share the K of a tile and exchange parts of its sum."
_SHARES_B = "Two CTAs with neighbouring tokens receive each box of B together."


def _prefill(tokens: int, flat: int, block_k: int = 64) -> Axes:
    return {"REGIME": "prefill", "TILE_TOKENS": tokens, "TILE_FLAT": flat, "BLOCK_K": block_k}


def _decode(flat: int) -> Axes:
    return {"REGIME": "decode", "TILE_TOKENS": 8, "TILE_FLAT": flat, "BLOCK_K": 64}


_ALL = (
    _gemm("sm_100a", rows=128, warps=6),
    _gemm("sm_90a", rows=64, warps=5),
    _lora(
        "prefill",
        "Ragged groups, two accumulators of two panels each.",
        arch="sm_100a",
        case=_GROUPS,
        axes=_prefill(64, 192),
        warps=6,
    ),
    _lora(
        "decode",
        _SHARES_K,
        arch="sm_100a",
        case=_FEW_TOKENS,
        axes=_decode(128),
        warps=6,
        split=2,
    ),
    _lora(
        "shared",
        _SHARES_B,
        arch="sm_100a",
        case=_MANY_TOKENS,
        axes=_prefill(64, 48),
        warps=6,
        multicast=2,
    ),
    _nvfp4(
        "few",
        "Experts of few tokens, in tiles whose scales begin at any column of an atom.",
        (9, 0, 43, 3),
        {"TILE_TOKENS": 16, "TILE_WEIGHTS": 128},
        n=136,
        clusters=2,
    ),
    _nvfp4(
        "pair",
        "A pair of CTAs multiplies tiles of many tokens.",
        (150, 0, 9, 3),
        {"TILE_TOKENS": 128, "TILE_WEIGHTS": 256},
        n=264,
        clusters=1,
        ctas=2,
    ),
    _nvfp4(
        "boxes",
        "Two warps fill a box of C: whole ones, one in part before rows to be left, a whole one.",
        (150, 9, 0, 32),
        {"OUT": "bf16", "TILE_TOKENS": 64, "TILE_WEIGHTS": 128},
        ids=(1, -1, 0, 2),
        n=136,
        clusters=1,
    ),
    _nvfp4(
        "few",
        "Experts of few tokens; four warpgroups multiply with the registers of a fifth.",
        (9, 0, 3, 5),
        {"TILE_TOKENS": 8, "TILE_WEIGHTS": 256},
        n=264,
        clusters=2,
        arch="sm_90a",
        warps=20,
        stages=3,
    ),
    _lora(
        "prefill",
        "Ragged groups, two warpgroups.",
        arch="sm_90a",
        case=_GROUPS,
        axes=_prefill(128, 192),
        warps=9,
    ),
    _lora(
        "decode",
        _SHARES_K,
        arch="sm_90a",
        case=_FEW_TOKENS,
        axes=_decode(48),
        warps=5,
        split=2,
    ),
    _lora(
        "shared",
        _SHARES_B,
        arch="sm_90a",
        case=_MANY_TOKENS,
        axes=_prefill(64, 48, 128),
        warps=5,
        multicast=2,
    ),
)
SUBJECTS = {subject.name: subject for subject in (*_ALL, *ATTENTION)}
