"""New tokens into a cache: the oracle's scales, codes and rows, and where they go."""

import ml_dtypes
import numpy as np
import pytest

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import decode
from kernelpack.kernels.kv_cache_append.cases import Case, case_of, inputs
from kernelpack.kernels.kv_cache_append.definition import KV_CACHE_APPEND
from kernelpack.kernels.kv_cache_append.problem import Problem
from kernelpack.kernels.kv_cache_append.reference import expected, places, rows_of, scales_of
from kernelpack.kernels.kv_operand.lookup import Lookup
from kernelpack.kernels.kv_operand.rows import FORMATS

BF16 = ml_dtypes.bfloat16
NAN = np.nan


def scale(most, *, power_of_two=False):
    """The scale of a row whose largest magnitude is this."""
    values = np.zeros((1, 512), np.float32)
    values[0, 100] = -most
    with np.errstate(all="ignore"):
        return float(scales_of(values, 512, 1, power_of_two=power_of_two)[0, 0])


@pytest.mark.parametrize(
    ("most", "exact", "power"),
    [
        (448, 1.0, 1.0),
        (336, 0.75, 1.0),
        (449, float(np.float32(449) / np.float32(448)), 2.0),
        (224, 0.5, 0.5),
        (0, 2.0**-40, 2.0**-13),
        (448 * 2.0**-13, 2.0**-13, 2.0**-13),
        (448 * 2.0**-14, 2.0**-14, 2.0**-13),
        (448 * 2.0**-50, 2.0**-40, 2.0**-13),
        (np.inf, float(np.float32(2.0**128 - 2.0**120) / np.float32(448)), 2.0**120),
        (NAN, NAN, NAN),
    ],
)
def test_scales(most, exact, power):
    """A 448th of the largest, or the power of two from there on; a floor for zeros."""
    found = [scale(most), scale(most, power_of_two=True)]
    assert np.array_equal([exact, power], found, equal_nan=True)


def test_blocks_of_scales():
    """Each block of values has its own; the last one is as short as the row."""
    values = np.ones((1, 576), np.float32) * 448
    values[0, 512:] = 896
    assert scales_of(values, 128, 5, power_of_two=False).tolist() == [[1, 1, 1, 1, 2]]


def tokens(count=4, seed=0):
    random = np.random.default_rng(seed)
    values = random.standard_normal((count, 576)).astype(BF16)
    return values[:, :512], values[:, 512:]


@pytest.mark.parametrize("name", ["bf16_576", "bf16_512"])
def test_bf16_rows(name):
    """bf16 rows are the values' own bits."""
    latent, rope = tokens()
    rows, scales = rows_of(FORMATS[name], latent, rope, 0, power_of_two=False)
    wanted = np.concatenate([latent, rope], 1)[:, : FORMATS[name].width]
    assert np.array_equal(wanted.view(np.uint16), rows.view(np.uint16))
    assert scales.shape == (4, 0)


@pytest.mark.parametrize(("name", "per_row"), [("fp8_576", 0), ("fp8_512", 0)])
def test_flat_rows_without_scales(name, per_row):
    """Codes are the nearest e4m3; what is too large is 448, a NaN is NaN."""
    latent, rope = tokens()
    latent = latent.copy()
    latent[0, :6] = [1000, -1000, np.inf, NAN, -0.0, 1.1875]
    rows, _ = rows_of(FORMATS[name], latent, rope, per_row, power_of_two=False)
    assert rows[0, :6].tolist() == [0x7E, 0xFE, 0x7E, 0x7F, 0x80, 0x3A]


@pytest.mark.parametrize("power_of_two", [False, True])
@pytest.mark.parametrize(
    ("name", "per_row"),
    [
        ("fp8_576", 1),
        ("fp8_576", 5),
        ("fp8_576", 18),
        ("fp8_512", 4),
        ("fp8_640", 1),
        ("fp8_656", 0),
    ],
)
def test_rows_mean_the_values(name, per_row, power_of_two):
    """Codes times scales are the values within half a step of e4m3, rope of bf16 within its own."""
    row, (latent, rope) = FORMATS[name], tokens(20)
    rows, bits = rows_of(row, latent, rope, per_row, power_of_two=power_of_two)
    block = 128 if row.inline_scales else row.block_of(per_row)
    beside = (
        rows[:, 512:528].copy().view(np.float32) if row.inline_scales else bits.view(np.float32)
    )
    wide = beside.repeat(block, 1)[:, : row.width].astype(np.float64)
    narrow = row.width if row.rope_dtype is DType.E4M3 else 512
    codes = decode(DType.E4M3, rows[:, :narrow]).astype(np.float64)
    values = np.concatenate([latent, rope], 1).astype(np.float64)
    error = np.abs(codes * wide[:, :narrow] - values[:, :narrow])
    assert (error <= np.maximum(np.abs(values[:, :narrow]) / 16, wide[:, :narrow] * 2.0**-10)).all()
    if row.rope_dtype is DType.BF16:
        kept = rows[:, row.rope_offset :].copy().view(BF16).astype(np.float64)
        factor = 1 if row.inline_scales else wide[:, :1]
        assert np.allclose(values[:, 512:], kept * factor, rtol=2.0**-7, atol=0)


def test_a_nan_is_its_scales():
    """All that shares the scale of a NaN is NaN, the rope of a 640-byte row too; others are not."""
    latent, rope = (part.copy() for part in tokens(2))
    latent[0, 130] = NAN
    rows, bits = rows_of(FORMATS["fp8_640"], latent, rope, 1, power_of_two=False)
    assert bits[:, 0].tolist()[0] == 0x7FFFFFFF
    assert (rows[0, :512] == 0x7F).all()
    assert (rows[0, 512:].view(np.uint16) == 0x7FFF).all()
    assert not (rows[1, :512] == 0x7F).any()
    inline, _ = rows_of(FORMATS["fp8_656"], latent, rope, 0, power_of_two=True)
    assert (inline[0, :512] == 0x7F).reshape(4, 128).all(1).tolist() == [False, True, False, False]
    assert inline[0, 512:528].view(np.uint32)[1] == 0x7FFFFFFF


def test_slots_name_rows():
    """An encoded index is a row of its block; -1, and what is past the cache, is not a row."""
    slots = np.array([0, 17, -1, 95, 96, -(2**31)], np.int32).view(np.uint32)
    lookup = Lookup(sequences=0, page=16, blocks=6)
    given = Problem(t=6, lookup=lookup, block_stride=48)
    assert places(given, {"slots": slots}).tolist() == [0, 49, -1, 255, -1, -1]


def test_slots_of_two_words():
    """Of a slot of 64 bits all count: 2^32 names no row."""
    slots = np.array([5, 2**32 + 5, -1], np.int64).view(np.uint32)
    given = Problem(
        t=3, slot_words=2, lookup=Lookup(sequences=0, page=16, blocks=6), block_stride=16
    )
    assert places(given, {"slots": slots}).tolist() == [5, -1, -1]


def test_tokens_follow_their_sequence():
    """The next places of each sequence, by its table; what has no page is left out."""
    lookup = Lookup(sequences=3, pages=2, page=4, blocks=7, table_stride=2, has_table=True)
    given = Problem(t=8, slot_words=0, lookup=lookup, block_stride=4)
    arrays = {
        "row_offsets": np.array([0, 3, 3, 7], np.uint32),
        "lengths": np.array([2, 9, 6], np.uint32),
        "table": np.array([5, 1, 0, 0, 2, 6], np.uint32),
    }
    assert places(given, arrays).tolist() == [22, 23, 4, 26, 27, -1, -1, -1]


def test_everything_else_is_left():
    """Bytes and scales that no token names are to be as they were."""
    case = Case(name="t", row=FORMATS["fp8_640"], scales_per_row=1, t=3)
    found = expected(case.problem, inputs(case))
    written = ~np.isnan(found["kv"].value).all(1)
    assert written.sum() == 3
    assert np.array_equal(written, ~np.isnan(found["kv_scales"].value[:, 0]))


@pytest.mark.parametrize(
    ("typed", "rule"),
    [
        ({"row": "fp4"}, "unknown row `fp4`"),
        ({"row": "fp8_576", "scales_per_row": "3"}, "`scales_per_row` must be what fp8_576 rows"),
        ({"t": "5000", "blocks": "2"}, "`t` must be at most page * blocks = 128, not 5000"),
    ],
)
def test_typed_sizes(typed, rule):
    """What a person types is checked by name."""
    with pytest.raises(ProblemError, match=rule.replace("*", r"\*")):
        case_of(typed)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"latent_stride": 516}, "`latent_stride` must be a multiple of 8 elements"),
        ({"block_stride": 15}, "`block_stride` must be from page = 16 rows"),
        ({"t": 2**31}, "`t` must be from 0 to below 2^31"),
        ({"lookup": Lookup(sequences=0, page=16, blocks=0)}, "`blocks` must be at least 1"),
    ],
)
def test_rules(changes, rule):
    """Sizes that the kernel does not take are named."""
    given = {"t": 2, "lookup": Lookup(sequences=0, page=16, blocks=6), "block_stride": 16}
    with pytest.raises(ProblemError) as error:
        Problem(**(given | changes)).check()
    assert rule in str(error.value)


def test_cases_hold_every_format():
    """Each format, with every number of scales it may have, is verified."""
    held = {(case.row.name, case.scales_per_row) for case in KV_CACHE_APPEND.telling()}
    assert {name for name, _ in held} == set(FORMATS)
    assert {scales for name, scales in held if name == "fp8_576"} == {0, 1, 5, 9, 18}
