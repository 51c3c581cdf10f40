"""The op after decode attention on a GPU that is pretended: what is launched, what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from tests.fakes.pretended import Pretended

ROOT = Path(__file__).parents[2]
T, H = 5, 6
BF16, FP32 = DType.BF16, DType.FP32


@pytest.fixture(scope="module")
def variants():
    return expand(load(ROOT / "manifests/mla_decode_project.yaml"))


class Bench(Pretended):
    """Inputs on a pretended GPU, and the manifest's kernel."""

    def run(self, **options):
        given = {
            "x": self.array((T, H, 512), BF16),
            "w_uv": self.array((H, 128, 512), DType.E4M3),
            "w_uv_scale": self.array((H, 1, 4), FP32),
        }
        return ops.mla_decode_project(**given | options, library=self.library)


@pytest.fixture
def bench(tmp_path, variants):
    return Bench(tmp_path, variants)


def test_one_launch(bench):
    """A head's products are four CTAs' work; the output is new."""
    out = bench.run()
    assert (out.shape, bench.cuda.launches[-1].grid) == ((T, H, 128), (4 * H, 1, 1))
    assert bench.cuda.launches[-1].block == (128, 1, 1)


def test_tiles_of_tokens(bench):
    """Of many tokens a CTA has all columns of a head; tiles of 32 are shared out."""
    bench.run(x=bench.array((100, H, 512), BF16))
    assert (bench.parameter("token_ctas"), bench.cuda.launches[-1].grid) == (4, (4 * H, 1, 1))
    assert bench.cuda.launches[-1].block == (512, 1, 1)


def test_part_of_a_wider_array(bench):
    """Heads and tokens may lie apart."""
    x = bench.array((T, H, 576), BF16)
    bench.run(x=replace(x, shape=(T, H, 512), strides=(H * 576, 576, 1)))
    found = [bench.parameter(name) for name in ("x_token_stride", "x_head_stride")]
    assert found == [H * 576, 576]


def test_no_tokens(bench):
    """Without tokens nothing is launched."""
    assert bench.run(x=bench.array((0, H, 512), BF16)).shape == (0, H, 128)
    assert bench.cuda.launches == []


BAD = {
    "x of another width": ({"x": ((T, H, 576), BF16)}, "`x` must have 512 columns, not 576"),
    "x of another type": ({"x": ((T, H, 512), FP32)}, "`x` must be bf16, not fp32"),
    "weights the other way": (
        {"w_uv": ((H, 512, 128), DType.E4M3)},
        r"`w_uv` must be \[6, 128, 512\], not \[6, 512, 128\]",
    ),
    "scales the other way": ({"w_uv_scale": ((H, 4, 1), FP32)}, "`w_uv_scale` must have 1 x 4 bl"),
    "scales of another type": ({"w_uv_scale": ((H, 1, 4), BF16)}, "`w_uv_scale` must be fp32"),
    "an output of another width": (
        {"out": ((T, H, 512), BF16)},
        "`out` must have 128 along",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(bench, name):
    """What is wrong is named, with what would be right."""
    given, message = BAD[name]
    with pytest.raises(ProblemError, match=message):
        bench.run(**{word: bench.array(*array) for word, array in given.items()})


def test_debug_reads_scales(bench):
    """Scales that are negative are reported to those who debug."""
    scales = bench.upload(np.full((H, 1, 4), -1, np.float32), FP32)
    with pytest.raises(ProblemError, match="`w_uv_scale` must be finite and at least 0"):
        bench.run(w_uv_scale=scales, debug=True)
