"""Weights of e4m3 as kernels round them: what is added, below which maximum, what may move."""

import numpy as np
import pytest

from kernelpack.emulator.call import call
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import decode, encode
from kernelpack.kernels.kv_operand.rows import FORMATS
from kernelpack.kernels.sparse_mla_prefill import native
from kernelpack.kernels.sparse_mla_prefill.definition import SPARSE_MLA_PREFILL
from kernelpack.kernels.sparse_mla_prefill.inputs import Case, inputs
from kernelpack.kernels.sparse_mla_prefill.weights import (
    BLACKWELL,
    HOPPER,
    SHIFT,
    STEP,
    Tiles,
    Weighed,
    e4m3,
)
from tests.kept import computed
from tests.kernels.emulated import outputs_of, parts_of, program
from tests.kernels.seeded import Mistake
from tests.kv.device import Device

PLAIN = Tiles(keys=1, places=1)
"""Each key may have a maximum of its own, and nothing is added."""
DITHER = """
#include <kp/mla/softmax_e4m3.cuh>
using namespace kp;
extern "C" __global__ void test(float* out) {
    out[threadIdx.x] = mla::dither<PLACES>(threadIdx.x % PLACES);
}
"""


def weighed(y, tiles):
    """Keys of these scores in units of log2 [h, n], at places from 0 on, without scales."""
    y = np.atleast_2d(np.asarray(y, float))
    keys = y.shape[1]
    return Weighed.of(y, np.ones(keys), np.arange(keys), tiles)


def test_e4m3_is_the_nearest():
    """It is what the formats' own rounding gives: halfway, saturated, tiny, negative, none."""
    random = np.random.default_rng(0).standard_normal(2000) * np.exp2(np.arange(2000) % 20 - 10)
    values = np.concatenate([random, [17, 19, 449, 1e9, -500, np.inf, 2.0**-10, 0, np.nan]])
    right = decode(DType.E4M3, encode(DType.E4M3, values.astype(np.float32), satfinite=True))
    assert np.array_equal(right, e4m3(values.astype(np.float32)), equal_nan=True)


def test_what_is_added_is_spread_over_neighbours():
    """Places count in the order of their bits reversed, around zero; they begin again."""
    found = Tiles(keys=128, places=4).dither(np.arange(6)) / STEP
    assert found.tolist() == [-3 / 8, 1 / 8, -1 / 8, 3 / 8, -3 / 8, 1 / 8]


@pytest.mark.toolchain
@pytest.mark.parametrize(("arch", "tiles"), [("sm_100a", BLACKWELL), ("sm_90a", HOPPER)])
def test_what_is_added_is_the_header_s(arch, tiles):
    """To the bit what CUDA computes, of every key of a tile."""
    found = np.zeros(128, np.float32)
    Device(arch).run(DITHER, {"PLACES": tiles.places}, found, threads=128)
    assert np.array_equal(tiles.dither(np.arange(128)).astype(np.float32), found)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [(1, [1, 1, 4, 4, 9]), (2, [3, 3, 3, 3, 9]), (128, [9] * 5)],
)
def test_a_maximum_lags_by_less_than_three(keys, expected):
    """It becomes the next integer when a tile's highest is more than 2.75 above it."""
    y = np.array([[0.5, 3, 3.9, 4.5, 9]])
    assert Tiles(keys=keys, places=1).maxima(y, np.arange(5)).tolist() == [expected]


def test_a_tile_s_keys_are_those_of_its_places():
    """Entries that name no row leave gaps: the second key is of the second tile."""
    y, places = np.array([[0.5, 9, 8]]), np.array([3, 64, 127])
    assert HOPPER.maxima(y, places).tolist() == [[1, 9, 9]]
    assert BLACKWELL.maxima(y, places).tolist() == [[9, 9, 9]]


def test_normal_weights_round_alike_below_any_maximum():
    """Maxima are integers: a key at a time or all at once, weights down to 2^-12 are the same."""
    y = np.random.default_rng(5).uniform(-8, 0, (3, 200))
    y[:, 130] = 3.5
    found = [weighed(y, Tiles(keys=keys, places=1)) for keys in (1, 256)]
    one, whole = (w.rounded * np.exp2(w.most) for w in found)
    assert np.array_equal(one, whole)


def test_weights_move_where_a_boundary_is_near():
    """Of 128, 136 (half way to 144), just below it and 140 in 256ths, two may move, by a step."""
    y = np.log2(np.array([128, 136 * (1 + 1e-6), 136 * (1 - 1e-6), 140]) / 256)
    one = weighed(y, PLAIN)
    moved = one.moved(np.full((1, 4), 1e-5)) * np.exp2(one.most)
    assert (moved * 256).round(9).tolist() == [[0, 16, 16, 0]]


def test_weights_move_where_a_maximum_may_be_another_integer():
    """Below 4 instead of 3 a weight of 3.6 steps is 1.8, and what is added counts twice."""
    y, tiles = [3 - 1e-7, 0, *(np.log2(np.array([3.6, 2.4]) * STEP) - 3)], Tiles(keys=4, places=32)
    assert not weighed(y, tiles).moved(np.full((1, 4), 1e-9)).any()
    moved = weighed(y, tiles).moved(np.full((1, 4), 1e-6)) * np.exp2(SHIFT) / STEP
    assert moved.tolist() == [[0, 0, 1, 1]]


def test_an_output_is_astray_by_what_its_keys_are_apart():
    """A weight that may move draws the mean to its key: keys alike leave it where it is."""
    y = np.log2(np.array([136, 200]) / 256)
    one, none = weighed(y, PLAIN), np.array([-np.inf])
    alike, apart = np.full((2, 512), 3.0), np.stack([np.zeros(512), np.full(512, 3.0)])
    error = np.full((1, 2), 1e-5)
    assert not native.astray(one, alike, none, error).out.any()
    exact = [w / (w + 208) for w in (128, 144)]
    assert native.astray(one, apart, none, error).out.min() >= 3 * (exact[1] - exact[0])


KEYS = 300
CASE = Case(
    name="t",
    t=1,
    h=3,
    topk=KEYS,
    page=KEYS,
    blocks=1,
    row=FORMATS["fp8_576"],
    kv_scales=1,
    scale=0.37,
)
FORMS = [
    ("sm_90a", 32, HOPPER, BLACKWELL),
    ("sm_90a", 64, HOPPER, BLACKWELL),
    ("sm_100a", 64, BLACKWELL, HOPPER),
    ("sm_100a", 128, BLACKWELL, HOPPER),
]


def one_hot(seed):
    """Rows whose V is one column each, so that outputs are weights.

    Scores are one column's, and so exact: they reach over 20 log2 units, and rise.
    """
    random, codes = np.random.default_rng(seed), np.zeros((KEYS, 576), np.float32)
    codes[np.arange(KEYS), np.arange(KEYS)] = 1
    codes[:, 575] = np.linspace(-30, 6, KEYS) + random.uniform(-6, 6, KEYS)
    q = np.zeros((CASE.h, 576), DType.BF16.numpy)
    q[:, 575] = 1
    return inputs(CASE) | {
        "q": q.reshape(-1),
        "kv": codes.astype(DType.E4M3.numpy).view(np.uint8),
        "kv_scales": random.uniform(0.5, 1.5, (KEYS, 1)).astype(np.float32),
        "indices": np.arange(KEYS, dtype=np.int32),
    }


def apart(out, arrays, tiles):
    """How far outputs of a head are from the oracle's, over what rounding to bf16 takes.

    Those left out have a weight that may be one of two.
    """
    numbers = arrays["kv"].view(DType.E4M3.numpy).astype(float)
    scales = arrays["kv_scales"][:, 0].astype(float)
    scores = np.log2(np.e) * CASE.scale * numbers[None, :, 575] * scales
    one = Weighed.of(scores, scales, np.arange(KEYS), tiles)
    right = native.attend(one, numbers, np.array([-np.inf])).out[0, :KEYS]
    is_sure = one.moved(np.full((1, KEYS), 1e-6))[0] == 0
    error = np.abs(out[0, 0, :KEYS].astype(float) - right) / np.maximum(2.0**-7 * right, 1e-30)
    return error[is_sure].max()


@pytest.mark.toolchain
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("arch", "heads", "tiles", "others"), FORMS)
def test_kernels_round_each_weight_as_the_oracle(bundle, arch, heads, tiles, others, seed):
    """By the key's place and the tile's maximum of its own family, not by the other's."""
    begin = f"sparse_mla_prefill[arch={arch},row=fp8_576,scale_block=0,heads={heads},query=bf16"
    arrays = one_hot(seed)
    out = outputs_of(bundle, begin, CASE, arrays)["out"]
    assert apart(out, arrays, tiles) <= 1 < apart(out, arrays, others)


ADDED = "((place + 0.5f) / keys - 0.5f) * STEP"
MISTAKES = {
    "nothing is added": (ADDED, "0.0f"),
    "the other sign": (ADDED, "(0.5f - (place + 0.5f) / keys) * STEP"),
    "neighbours are alike": ("if (key & bit) place += of;", "if (key & bit) place += bit;"),
    "a place too far": ("dither(uint32_t key) {", "dither(uint32_t key) { key = (key + 1) % keys;"),
    "half of it": ("STEP = 0x1p-9f;", "STEP = 0x1p-10f;"),
    "a maximum follows sooner": ("SLACK = 2.75f", "SLACK = 0.5f"),
    "a maximum is one more": ("maximum = ceilf(y);", "maximum = ceilf(y) + 1;"),
}


@pytest.mark.toolchain
@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_kernel_that_rounds_otherwise_is_seen(mistake):
    """Each of these moves some weight of Hopper's tile of 64 heads."""
    ptx, variant = Mistake(
        definition=SPARSE_MLA_PREFILL,
        axes={"ROW": "fp8_576", "SCALE_BLOCK": 0, "HEADS": 64, "QUERY": "bf16"},
        file="kp/mla/softmax_e4m3.cuh",
        old=MISTAKES[mistake][0],
        new=MISTAKES[mistake][1],
    )._made()
    arrays, sizes = one_hot(0), CASE.sizes | {"sm_count": 1}
    out = computed(
        parts_of(ptx, variant, sizes, arrays, "unwatched"),
        lambda: call(program(ptx), variant, sizes, arrays, checks=()).outputs,
    )["out"]
    assert apart(out, arrays, HOPPER) > 1
