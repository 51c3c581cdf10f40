"""An output beside the oracle's: what is wrong, which element shows it, where errors lie."""

import numpy as np
import pytest

from kernelpack.errors import ProblemError
from kernelpack.kernels.definition import Expected
from kernelpack.verify.compare import MAP_SIDE, NOT_A_NUMBER, WITHIN, compare, picture


def against(found, expected, bound=0.5):
    expected = np.asarray(expected, np.float64)
    return compare(
        "c", np.asarray(found), Expected(value=expected, bound=np.full(expected.shape, bound))
    )


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        ([[1.0, 2.0]], 0),
        ([[1.5, 2.0]], 0),  # all of the bound
        ([[1.6, 2.0]], 1),
        ([[np.nan, 2.0]], 1),
        ([[np.inf, -np.inf]], 2),
    ],
)
def test_wrong_elements(found, wrong):
    """An element is wrong beyond its bound, and where it is not a number."""
    assert against(found, [[1.0, 2.0]]).wrong == wrong


@pytest.mark.parametrize("shape", [(0,), (3, 0, 16), (0, 4), (2, 3, 0)])
def test_nothing(shape):
    """An output without elements is right, and has a map without pixels."""
    found = against(np.zeros(shape, np.float32), np.zeros(shape))
    assert (found.is_right, found.elements, found.worst.ratio) == (True, 0, 0.0)
    assert found.picture.levels == b""


def test_an_oracle_of_another_shape():
    """Numbers that numpy would spread over an output are no oracle of it."""
    with pytest.raises(ProblemError, match=r"`c`: the oracle has the shape \(2,\), the output"):
        against(np.ones((3, 2)), [1.0, 1.0])


def test_zero_bound():
    """An exact zero may have a bound of zero."""
    assert against([0.0, 1e-30], [0.0, 0.0], bound=0.0).wrong == 1


def test_first_and_worst():
    """The first wrong element in row-major order, and the one of the largest error."""
    found = against([[0, 1], [9, 2]], [[0, 0], [0, 0]])
    assert (found.first.index, found.worst.index, found.worst.ratio) == ((0, 1), (1, 0), 18.0)


def test_off_as_a_whole():
    """Elements may each be within their bounds, and all of them together beyond their own."""
    expected = Expected(value=np.ones(4), bound=np.ones(4), cosine=0.01)
    found = compare("c", np.full(4, 1.5), expected)
    assert (found.is_right, found.wrong) == (False, 0)
    assert str(found) == "c: off by 7.69 cosine bounds as a whole"


@pytest.mark.parametrize(("found", "wrong"), [([np.inf, -np.inf], 0), ([np.inf, np.inf], 1)])
def test_infinities(found, wrong):
    """An infinity that is expected must be met, sign and all."""
    assert against(found, [np.inf, -np.inf]).wrong == wrong


def test_right_has_no_first():
    """Where all is right there is no wrong element, and the nearest to its bound is the worst."""
    found = against([0.0, 0.25], [0.0, 0.0])
    assert (found.first, found.worst.index, found.is_right) == (None, (1,), True)


def test_words():
    """A wrong output says how many elements and shows the first."""
    assert str(against([1.0, 3.0], [1.0, 1.0])) == (
        "c: 1 of 2 wrong, first [1] = 3, expected 1 (4 bounds off)"
    )


def test_words_of_an_exact_output():
    """A bound of zero is no unit to count in."""
    found = against([1.0, 3.0], [1.0, 1.0], bound=0)
    assert str(found) == "c: 1 of 2 wrong, first [1] = 3, expected exactly 1"


def test_words_of_what_was_to_be_left():
    """NaN is not a number that was expected."""
    assert str(against([2.0], [np.nan])) == (
        "c: 1 of 1 wrong, first [0] = 2, expected NaN: to be left as it was, unwritten"
    )


@pytest.mark.parametrize(
    ("ratio", "level"),
    [(0.0, 0), (0.5, WITHIN // 2), (1.0, WITHIN), (np.inf, NOT_A_NUMBER)],
)
def test_levels(ratio, level):
    """Levels up to WITHIN are shares of the bound; the last is NaN."""
    assert list(picture(np.array([[ratio]])).levels) == [level]


@pytest.mark.parametrize("ratio", [1.0001, 2.0, 1e300])
def test_levels_of_wrong_elements(ratio):
    """What is wrong is above WITHIN, however wrong."""
    assert WITHIN < picture(np.array([[ratio]])).levels[0] < NOT_A_NUMBER


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((7,), (1, 1, 7)),
        ((3, 5, 7), (3, 5, 7)),
        ((3, 500, 49), (3, MAP_SIDE, MAP_SIDE)),
        ((2, 9, 4, 4), (8, 4, 4)),
    ],
)
def test_map_shape(shape, expected):
    """A map has a plane for each, and at most MAP_SIDE pixels along a side."""
    assert picture(np.zeros(shape)).shape == expected


@pytest.mark.parametrize("row", [0, 250, 499])
def test_map_keeps_the_worst(row):
    """A single wrong element shows, however much a pixel covers."""
    ratio = np.zeros((500, 500))
    ratio[row, row] = np.inf
    assert NOT_A_NUMBER in picture(ratio).levels
