"""How the NVFP4 grouped GEMM stores C on Blackwell, counted on the emulator."""

import numpy as np
import pytest

from kernelpack.emulator.call import call
from kernelpack.formats.dtype import DType
from kernelpack.kernels.definition import Arrays
from kernelpack.kernels.nvfp4_grouped_gemm.problem import Case, inputs
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.render.render import render
from kernelpack.spec.arch import Arch
from kernelpack.verify.counts import Counts
from tests.kept import ROOT, compiled, computed
from tests.kernels.emulated import parts_of, program

pytestmark = pytest.mark.toolchain

MANIFEST = load(ROOT / "manifests" / "nvfp4_grouped_gemm.yaml")
MANY = Case(name="many", e=1, n=4096, k=1024, tokens=(512,), ids=(0,))
FEW = Case(name="few", e=3, n=136, k=64, tokens=(9, 0, 43), ids=(1, 0, 2))
BY_COPIES = ("cp.async.bulk.tensor", "write", "global")
BY_THREADS = ("threads", "write", "global")


def counted(case: Case, tile: dict[str, int | str]) -> dict[str, int]:
    """Executed warp instructions, and bytes of C by who stores them."""
    axes = {"OUT": case.out_dtype.label, **tile}
    (variant,) = [
        v for v in expand(MANIFEST, [Arch("sm_100a")]) if axes.items() <= dict(v.axes).items()
    ]
    text = compiled(render(variant, ROOT / "templates"), "sm_100a").text
    sizes, arrays = case.sizes | {"sm_count": 2}, inputs(case)

    def run() -> Arrays:
        counts = Counts()
        called = call(program(text), variant, sizes, arrays, checks=[counts.join])
        called.result.raise_on_error()
        found = called.result.steps, counts.moved[BY_COPIES], counts.moved[BY_THREADS]
        return {"counts": np.array(found)}

    found = computed(parts_of(text, variant, sizes, arrays, "counted"), run)["counts"]
    return dict(zip(("instructions", "copied", "stored"), found.tolist(), strict=True))


def test_instructions_of_many_tokens():
    """Whole tiles of a pair are stored by fewer instructions than a store a row and warp takes."""
    found = counted(MANY, {"TILE_TOKENS": 256, "TILE_WEIGHTS": 256})
    assert found["instructions"] <= 280_000  # 687,264 with 64 bytes a store


@pytest.mark.parametrize("tokens", [8, 16, 32, 64])
def test_who_stores(tokens):
    """TMA stores whole boxes, threads the rest: each byte of C once, and no other."""
    found = counted(FEW, {"TILE_TOKENS": tokens, "TILE_WEIGHTS": 128})
    whole = {8: 48, 16: 32, 32: 32, 64: 32}[tokens]
    assert (found["copied"], found["stored"]) == (whole * 136 * 2, (52 - whole) * 136 * 2)


@pytest.mark.parametrize(("rows", "copied"), [("weights", 0), ("tokens", 128 * 136 * 4)])
def test_who_stores_four_bytes(rows, copied):
    """Where weights are rows a warp has lines of four-byte outputs, and stores them itself."""
    case = Case(name="wide", e=1, n=136, k=64, tokens=(128,), ids=(0,), out_dtype=DType.FP32)
    tile = {"ROWS": rows, "TILE_TOKENS": 128, "TILE_WEIGHTS": {"weights": 256, "tokens": 128}[rows]}
    found = counted(case, tile)
    assert (found["copied"], found["stored"]) == (copied, 128 * 136 * 4 - copied)
