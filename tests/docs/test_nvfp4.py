"""The guide to NVFP4: its blocks run in order, on the emulator, and compute what they say."""

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import decode
from kernelpack.formats.packing import unpack
from tests.docs.pages import ROOT, blocks
from tests.machine_code.build import build_in

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

PAGE = "docs/guides/nvfp4.md"
E, N, K = 3, 72, 96
COUNTS, IDS = (130, 0, 3, 9), (2, 0, -1, 1)
INACTIVE = range(130, 133)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The kernels of the page that fit few tokens."""
    manifests = tuple(
        ROOT / "manifests" / f"{stem}.yaml" for stem in ("nvfp4_quantize", "nvfp4_grouped_gemm")
    )
    keep = "sm_100a and (quantize or out=bf16 and tile_tokens=8)"
    folder = tmp_path_factory.mktemp("nvfp4")
    return ops.EmulatedLibrary(build_in(folder, manifests=manifests, keep=keep))


@pytest.fixture(scope="module")
def page(library):
    """The names that the page takes for granted, and those that it makes."""
    random = np.random.default_rng(0)
    scales = random.uniform(0.5, 2, (E, N, K // 16)).astype(DType.E4M3.numpy)
    x = random.standard_normal((sum(COUNTS), K)).astype(np.float32)
    names = {
        "library": library,
        "weight": random.integers(0, 256, (E, N, K // 2), np.uint8),
        "weight_scale": scales,
        "weight_scale_2": np.array([0.5, 1, 2], np.float32),
        "input_scale": np.full(E, np.abs(x).max() / (448 * 6), np.float32),
        "x": x.astype(DType.BF16.numpy),
        "counts": COUNTS,
        "expert_ids": np.array(IDS, np.int32),
    }
    exec("\n".join(blocks(PAGE, "python")), names)
    return names


def weights(page, expert):
    """An expert's weights as the page's table says."""
    codes = decode(DType.E2M1, unpack(page["weight"][expert], 4))
    scales = page["weight_scale"][expert].astype(np.float32).repeat(16, -1)
    return codes * scales * page["weight_scale_2"][expert]


@pytest.mark.parametrize(("rows", "expert"), [(slice(0, 130), 2), (slice(133, 142), 1)])
def test_product(page, rows, expert):
    """Tokens times their expert's weights, but for what 4 bits of the tokens lose."""
    exact = page["x"][rows].astype(np.float32) @ weights(page, expert).T
    error = page["c"][rows].astype(np.float32) - exact
    assert np.linalg.norm(error) < 0.15 * np.linalg.norm(exact)


def test_rows_without_an_expert(page):
    """Rows of group -1 are left: zero in an output that the op made."""
    assert not page["c"][INACTIVE].astype(np.float32).any()


def test_starts_are_no_corrections(page):
    """The page's mistake is found, by group."""
    assert page["message"] == "`group_scale_offsets` must be 1 for group 1, not 2"
