"""Fragments that are loaded, multiplied and stored give the matrix product, in every layout."""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernelpack.emulator import launch
from kernelpack.errors import UnsupportedError

NUMPY: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32,
    "f64": np.float64, "s8": np.int8, "u8": np.uint8, "s32": np.int32,
}  # fmt: skip
CASES = [
    # shape, types of d, a, b and c, registers of each, layouts of a, b, c and d
    ("m16n16k16", "f32 f16 f16 f32", (8, 8, 8, 8), "row col row row"),
    ("m16n16k16", "f32 f16 f16 f32", (8, 8, 8, 8), "col row col col"),
    ("m16n16k16", "f16 f16 f16 f16", (4, 8, 8, 4), "row row row col"),
    ("m32n8k16", "f32 f16 f16 f16", (8, 8, 8, 4), "row col row row"),
    ("m8n32k16", "f16 f16 f16 f32", (4, 8, 8, 8), "col col row row"),
    ("m16n16k16", "f32 bf16 bf16 f32", (8, 4, 4, 8), "row col col row"),
    ("m8n32k16", "f32 bf16 bf16 f32", (8, 2, 8, 8), "row row row row"),
    ("m32n8k16", "s32 s8 s8 s32", (8, 4, 1, 8), "row col row row"),
    ("m16n16k16", "s32 u8 u8 s32", (8, 2, 2, 8), "col col row row"),
    ("m16n16k8", "f32 tf32 tf32 f32", (8, 4, 4, 8), "row col row row"),
    ("m8n8k4", "f64 f64 f64 f64", (2, 1, 1, 2), "row col row row"),
]
PAD = 8
"""Elements between the rows, or columns, of a matrix in memory."""


def module(shape: str, types: str, counts: tuple[int, ...], layouts: str) -> str:
    """A kernel that multiplies one tile; the strides are parameters."""
    d, a, b, c = types.split()
    bits = 64 if d == "f64" else 32
    names = [
        "{" + ", ".join(f"%{name}{i}" for i in range(count)) + "}"
        for name, count in zip("dabc", counts, strict=True)
    ]
    declared = " ".join(f".reg .b{bits} %{name}<8>;" for name in "dabc")
    of_a, of_b, of_c, of_d = layouts.split()
    kinds = f"{d}.{c}" if a == "f16" else f"{d}.{a}.{b}.{c}"
    loads = " ".join(
        f"wmma.load.{name}.sync.aligned.{layout}.{shape}.global.{kind} {to}, [%p{name}], %s{name};"
        for name, layout, kind, to in (
            ("a", of_a, a, names[1]), ("b", of_b, b, names[2]), ("c", of_c, c, names[3])
        )
    )  # fmt: skip
    pointers = " ".join(f"ld.param.u64 %p{n}, [{n}]; ld.param.u32 %s{n}, [s{n}];" for n in "dabc")
    parameters = ", ".join(f".param .u64 {n}, .param .u32 s{n}" for n in "dabc")
    return f""".version 9.1\n.target sm_100a\n.address_size 64
.visible .entry k({parameters})
{{ {declared} .reg .b64 %pd, %pa, %pb, %pc; .reg .b32 %sd, %sa, %sb, %sc; {pointers} {loads}
  wmma.mma.sync.aligned.{of_a}.{of_b}.{shape}.{kinds} {", ".join(names)};
  wmma.store.d.sync.aligned.{of_d}.{shape}.global.{d} [%pd], {names[0]}, %sd; ret; }}"""


MODULES = [module(*case) for case in CASES]


def placed(matrix: np.ndarray, layout: str) -> np.ndarray:
    """A matrix as it lies in memory, with gaps."""
    rows = matrix if layout == "row" else matrix.T
    return np.pad(rows, ((0, 0), (0, PAD)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[1]} {case[3]}")
def test_a_product(case: tuple[str, str, tuple[int, ...], str]):
    """Small integers: every sum is exact."""
    shape, types, _, layouts = case
    m, n, k = map(int, re.fullmatch(r"m(\d+)n(\d+)k(\d+)", shape).groups())  # type: ignore[union-attr]
    kinds = [NUMPY[kind] for kind in types.split()]
    random = np.random.default_rng(1)
    a, b, c = (
        random.integers(0, 4, sides).astype(kind)
        for sides, kind in zip(((m, k), (k, n), (m, n)), kinds[1:], strict=True)
    )
    of_a, of_b, of_c, of_d = layouts.split()
    out = placed(np.zeros((m, n), kinds[0]), of_d)
    given = [out, placed(a, of_a), placed(b, of_b), placed(c, of_c)]
    arguments = [part for each in given for part in (each, each.shape[1])]
    result = launch(module(*case), "k", 1, 32, *arguments, level="strict")
    found = out[:, :-PAD] if of_d == "row" else out[:, :-PAD].T
    expected = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    assert result.clean
    assert expected.tolist() == found.astype(np.float64).tolist()


def test_a_warp_that_is_not_whole():
    """All lanes take part; fewer are refused."""
    zeros = np.zeros((16, 24), np.float32)
    arguments = [part for _ in range(4) for part in (zeros, 24)]
    with pytest.raises(UnsupportedError, match="a wmma of a warp that is not whole"):
        launch(MODULES[0], "k", 1, 16, *arguments)
