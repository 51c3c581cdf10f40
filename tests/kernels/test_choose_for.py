"""Calls that name what they choose for: tile and slices of K do not follow the batch."""

from functools import cache
from itertools import product
from pathlib import Path

import pytest

from kernelpack.formats.dtype import DType
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.spec.arch import Arch
from kernelpack.spec.launch import shape_of
from kernelpack.spec.select import select

MANIFESTS = Path(__file__).parents[2] / "manifests"
BF16 = int(DType.BF16)
LORA = {"n": 16, "k": 7168, "g": 32, "a_dtype": BF16, "out_dtype": BF16}
NVFP4 = {"n": 4096, "k": 7168, "e": 32, "scale_blocks": 1000, "out_dtype": BF16}
KERNELS = [
    ("lora_shrink_qkv", "m", LORA, "sm_90a"),
    ("lora_shrink_qkv", "m", LORA, "sm_100a"),
    ("nvfp4_w4a16_grouped_gemm", "t", NVFP4, "sm_90a"),
    ("nvfp4_grouped_gemm", "t", NVFP4, "sm_90a"),
    ("nvfp4_grouped_gemm", "t", NVFP4, "sm_100a"),
]
BATCHES = list(product((1, 7, 64, 500, 20_000), (1, 3, 32)))


@cache
def variants(kernel, target):
    """All of a kernel for one target."""
    return expand(load(MANIFESTS / f"{kernel}.yaml"), [Arch(target)])


def chosen(kernel, target, sizes):
    """The variant, and how many CTAs share a tile: a slice of K each, or half of its rows."""
    arch = Arch(target)
    sizes = sizes | {"sm_count": arch.multiprocessors}
    variant = select(variants(kernel, target), sizes, arch.capabilities[0])
    return variant.id, shape_of(variant, sizes).cluster.x


def choices(kernel, rows, sizes, target, choose_for):
    """What is chosen over all batches."""
    return {
        chosen(kernel, target, sizes | {rows: m, "n_active": groups, "choose_for": choose_for})
        for m, groups in BATCHES
    }


@pytest.mark.parametrize(("kernel", "rows", "sizes", "target"), KERNELS)
def test_the_batch_decides(kernel, rows, sizes, target):
    """Where nobody names a number, the tile or the slices follow the batch."""
    assert len(choices(kernel, rows, sizes, target, 0)) > 1


@pytest.mark.parametrize("choose_for", [1, 8, 64, 4096])
@pytest.mark.parametrize(("kernel", "rows", "sizes", "target"), KERNELS)
def test_the_batch_decides_nothing(kernel, rows, sizes, target, choose_for):
    """One number for all calls: one tile, and as many slices of K, whatever tokens and groups."""
    assert len(choices(kernel, rows, sizes, target, choose_for)) == 1


@pytest.mark.parametrize(("kernel", "rows", "sizes", "target"), KERNELS)
def test_it_is_the_choice_of_such_a_call(kernel, rows, sizes, target):
    """What is chosen for 4096 tokens is what 4096 tokens of all adapters or experts get."""
    call = sizes | {rows: 4096, "n_active": 32, "choose_for": 0}
    assert choices(kernel, rows, sizes, target, 4096) == {chosen(kernel, target, call)}
