"""Before decode attention: the oracle's codes, norms, rotations and places, by hand."""

import ml_dtypes
import numpy as np
import pytest

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.block_scaled.inputs import laid_out
from kernelpack.kernels.block_scaled.reference import Weights, product, quantise
from kernelpack.kernels.kv_operand.lookup import Lookup
from kernelpack.kernels.kv_operand.rows import FORMATS
from kernelpack.kernels.mla_decode_absorb.cases import Case, case_of, inputs
from kernelpack.kernels.mla_decode_absorb.definition import MLA_DECODE_ABSORB
from kernelpack.kernels.mla_decode_absorb.new_rows import normalise, rotate, sums_of_squares
from kernelpack.kernels.mla_decode_absorb.places import find
from kernelpack.kernels.mla_decode_absorb.problem import Problem

BF16 = ml_dtypes.bfloat16
NAN = np.nan


def group(first, second):
    """A group of zeros but for two values."""
    values = np.zeros((1, 128), np.float32)
    values[0, :2] = first, second
    return values


@pytest.mark.parametrize(
    ("first", "second", "codes", "scale"),
    [
        (448, 1.0625, (448, 1), 1),
        (-224, 0.53125, (-448, 1), 0.5),
        (1200, 3, (448, 1.125), 1200 / 448),
        (4800, 3, (448, 1.125), 1200 / 448),
        (np.inf, -np.inf, (448, -448), 1200 / 448),
        (0, -0.0, (0, -0.0), 0),
        (2.0**-119, 0, (448, 0), 2.0**-119 / 448),
        (2.0**-120, 0, (0, 0), 2.0**-120 / 448),
        (NAN, 1, (NAN, NAN), NAN),
    ],
)
def test_quantise(first, second, codes, scale):
    """A 448th of the largest, which counts as 1200 at most; too small a scale has no inverse."""
    found, scales = quantise(group(first, second))
    assert np.array_equal(codes, found[0, :2], equal_nan=True)
    assert np.array_equal([np.float32(scale)], scales[0], equal_nan=True)


def test_product():
    """Codes of each group times weights, by the scales of both, and added up."""
    x = np.zeros((1, 1, 256), np.float32)
    x[0, 0, [3, 4, 130]] = 448, 224, 44.8
    codes = np.zeros((1, 128, 256), ml_dtypes.float8_e4m3fn)
    codes[0, 7, [3, 4, 130]] = 2, 4, -8
    weights = Weights.of(codes, np.array([[3, 0.5]], np.float32))
    wanted = (448 * 2 + 224 * 4) * 3 - 448 * 8 * float(np.float32(0.1)) * 0.5
    found = product(x, weights)
    assert found.value[0, 0, 7] == pytest.approx(wanted, rel=1e-7)
    assert np.count_nonzero(found.value) == 1


def test_bounds_follow_the_products():
    """What may be off is a rounding to bf16, and of sums that cancel what was cancelled."""
    x = np.full((1, 1, 128), 448, np.float32)
    codes = np.ones((1, 128, 128), ml_dtypes.float8_e4m3fn)
    codes[:, :, ::2] = -1
    found = product(x, Weights.of(codes, np.ones((1, 1), np.float32)))
    assert found.value[0, 0, 0] == 0
    assert found.bound[0, 0, 0] == pytest.approx(128 * 448 * 2.0**-18)


def test_gaps():
    """Tokens and heads lie apart in memory, with NaN between them."""
    values = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    wanted = [0, 1, NAN, 2, 3, NAN, NAN, NAN, 4, 5, NAN, 6, 7]
    assert np.array_equal(wanted, laid_out(values, (2, 1)).astype(np.float64), equal_nan=True)


def test_lanes_add_up():
    """Squares are added within a lane, then lanes by twos: the order counts where sums round."""
    x = np.zeros((1, 512), np.float32)
    x[0, :16] = 2.0**-5  # the first lane's squares are 2^-6 together
    x[0, 16] = 2.0**8
    x[0, 17:32] = 2.0**-5  # each is lost beside the square before it
    assert sums_of_squares(x).tolist() == [2.0**16 + 2.0**-6]


@pytest.mark.parametrize(
    ("gamma", "wanted"),
    [
        (np.full(512, 1.5, np.float32), 1.5 / np.sqrt(1.25)),
        (np.full(512, 1.5, BF16), 1.5 * float(BF16(1 / np.sqrt(1.25)))),
    ],
)
def test_norm(gamma, wanted):
    """Numbers are divided by the root of the mean square, then weighed, in gamma's type."""
    found = normalise(np.ones((1, 512), BF16), gamma, 0.25)
    assert found[0, 100] == BF16(wanted)


def test_norm_of_what_has_none():
    """Zeros stay zeros without an epsilon too big; a row too large is zeros; a NaN is all of it."""
    x = np.zeros((3, 512), BF16)
    x[1] = 2.0**100
    x[2, 7] = NAN
    found = normalise(x, np.ones(512, BF16), 1e-6)
    assert not found[:2].astype(np.float32).any()
    assert (found[2].view(np.uint16) == 0x7FFF).all()


def test_rotation():
    """A pair turns by its own angle: a quarter, a half, none."""
    freqs = np.zeros((1, 64), np.float32)
    freqs[0, 0::2] = 1
    freqs[0, :4] = 0, 1, -1, 0
    x = np.arange(64, dtype=np.float32)[None].astype(BF16)
    found = rotate(x, freqs)[0].astype(np.float32)
    assert found[:6].tolist() == [-1, 0, -2, -3, 4, 5]
    assert np.array_equal(x[0, 6:].astype(np.float32), found[6:])


_LOOKUP = Lookup(sequences=3, pages=2, page=4, blocks=7, table_stride=2, has_table=True)


def followed(offsets, lengths, *, t=8, batch=None, table=(5, 1, 0, 0, 2, 6)):
    """Positions and rows of tokens that follow three sequences."""
    problem = Problem(
        t=t, lookup=_LOOKUP, block_stride=4, most_positions=50, has_batch=batch is not None
    )
    arrays = {
        "row_offsets": np.array(offsets, np.uint32),
        "lengths": np.array(lengths, np.uint32),
        "table": np.array(table, np.uint32),
        "batch": np.array([] if batch is None else [batch], np.uint32),
    }
    found = find(problem, arrays)
    return found.positions.tolist(), found.rows.tolist()


def test_tokens_follow_their_sequences():
    """A position is what the sequence has, one more each; a page that is not there is no row."""
    positions, rows = followed([0, 3, 3, 7], [2, 9, 6])
    assert positions == [2, 3, 4, 6, 7, 8, 9, -1]
    assert rows == [22, 23, 4, 26, 27, -1, -1, -1]


def test_sequences_past_the_batch():
    """What follows the sequences that count may be anything."""
    garbage = 2**32 - 1
    found = followed([0, 3, 5, 0], [2, 0, garbage], t=6, batch=2, table=(5, 1, 3, 0, garbage, 0))
    assert found == ([2, 3, 4, 0, 1, -1], [22, 23, 4, 12, 13, -1])


def test_the_first_sequence_that_fits():
    """Real tokens are of real sequences, whatever offsets follow."""
    positions, _ = followed([0, 3, 5, 2**32 - 1], [2, 0, 1000], t=6)
    assert positions == [2, 3, 4, 0, 1, -1]


def test_positions_one_by_one():
    """A position that freqs lacks does not count: the token has no row; nor has a bad slot."""
    slots = np.array([3, 4, 5, 28, -1], np.int64).view(np.uint32)
    positions = np.array([0, 49, 50, 7, 8], np.int32).view(np.uint32)
    problem = Problem(
        t=5,
        lookup=Lookup(sequences=0, page=4, blocks=7),
        block_stride=8,
        slot_words=2,
        position_words=1,
        most_positions=50,
    )
    found = find(problem, {"slots": slots, "positions": positions})
    assert found.positions.tolist() == [0, 49, -1, 7, 8]
    assert found.rows.tolist() == [3, 8, -1, -1, -1]


def test_what_is_left_out_is_left():
    """Rotation alone leaves 512 columns as they were, products alone the rest."""
    alone = {case.name: case for case in MLA_DECODE_ABSORB.telling()}
    for name, kept in (("telling_rotation", slice(512)), ("telling_products", slice(512, None))):
        case = alone[name]
        out = MLA_DECODE_ABSORB.expected(case, inputs(case))["out"].value
        left = np.zeros(576, bool)
        left[kept] = True
        assert np.array_equal(np.isnan(out).all((0, 1)), left)


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
    with pytest.raises(ProblemError) as error:
        case_of(typed)
    assert rule in str(error.value)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"q_head_stride": 516}, "`q_head_stride` must be a multiple of 8 elements"),
        ({"rope": 32}, "`rope` must be 0 or 64, not 32"),
        ({"rope": 0}, "`rope` must be the 64 of fp8_656 rows, not 0"),
        ({"h": 1025}, "`h` must be from 0 to 1024"),
        ({"most_positions": 0}, "`most_positions` must be from 1 to below 2^31, not 0"),
        ({"block_stride": 15}, "`block_stride` must be from page = 16 rows"),
    ],
)
def test_rules(changes, rule):
    """Sizes that the kernel does not take are named."""
    row, lookup = FORMATS["fp8_656"], Lookup(sequences=0, page=16, blocks=6)
    given = {"t": 2, "row": row, "lookup": lookup, "block_stride": 16}
    with pytest.raises(ProblemError) as error:
        Problem(**(given | changes)).check()
    assert rule in str(error.value)


def test_cases_hold_every_format():
    """Each format of rows is verified, with the norm's weights of both types."""
    told = MLA_DECODE_ABSORB.telling()
    assert {case.row.name for case in told if case.row} == set(FORMATS)
    assert {case.gamma for case in told} == {DType.BF16, DType.FP32}


def test_a_case_is_its_seed():
    """The same case has the same inputs."""
    case = Case(name="twice", seed=3)
    first, second = inputs(case), inputs(case)
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)
