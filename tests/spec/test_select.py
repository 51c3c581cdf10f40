"""Which variant serves a problem, and why each other one does not."""

import numpy as np
import pytest

from kernelpack.errors import ProblemError, SelectionError
from kernelpack.formats.dtype import DType
from kernelpack.spec.expr import Word
from kernelpack.spec.select import judge, names_of, select, sizes_of
from tests.fakes.variants import NUMBERS, SIZES, variant

BF16 = {"m": 100, "n": 16, "k": 4096, "n_active": 4} | dict.fromkeys(
    ("a_dtype", "out_dtype"), int(DType.BF16)
)
HOPPER = (9, 0)
BOTH = [variant(tile=tile) for tile in (64, 16)]


@pytest.mark.parametrize(("m", "tile"), [(16, 16), (17, 16), (33, 16), (60, 16), (64, 16), (5, 16)])
def test_least_cost(m, tile):
    """Of the variants that serve, the one of least cost is taken; of equal costs, the first id."""
    assert dict(select(BOTH, BF16 | {"m": m}, HOPPER).axes)["TILE"] == tile


def test_order_does_not_matter():
    """The order of the candidates changes nothing."""
    assert select(BOTH, BF16, HOPPER) == select(BOTH[::-1], BF16, HOPPER)


@pytest.mark.parametrize(
    ("sizes", "capability", "reason"),
    [
        (BF16 | {"k": 4097}, HOPPER, "k must be a multiple of 8"),
        (BF16 | {"a_dtype": int(DType.FP16)}, HOPPER, "a and b must be bf16"),
        (BF16, (10, 0), "sm_90a runs on compute capability 9.0 only"),
    ],
)
def test_why_one_does_not_serve(sizes, capability, reason):
    """A variant that does not serve has no cost, and the reason of the first claim it breaks."""
    verdict = judge(variant(), sizes, capability)
    assert (verdict.cost, verdict.reason) == (None, reason)


def test_none_serves():
    """The error says the problem, the device, how many were tried and why each lost."""
    with pytest.raises(SelectionError) as error:
        select([*BOTH, variant(dtype="fp16")], BF16 | {"m": 3, "k": 5}, HOPPER)
    assert "lora_shrink_qkv serves m=3, n=16, k=5" in error.value.what
    assert "on compute capability 9.0 (3 candidates)" in error.value.what
    assert "k must be a multiple of 8: " in error.value.hint


def test_a_word_is_shown():
    """A word that nothing serves is in the error as it was given."""
    sizes = sizes_of(BF16 | {"a_dtype": Word("float32"), "out_dtype": Word("fp32")}, variant())
    with pytest.raises(SelectionError, match="a_dtype=float32, out_dtype=fp32 on compute"):
        select(BOTH, sizes, HOPPER)


def test_none_at_all():
    """The error of an empty bundle says so."""
    with pytest.raises(SelectionError, match=r"any kernel.*0 candidates") as error:
        select([], BF16, HOPPER)
    assert error.value.hint == "the bundle holds none"


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"m": 2.7}, "must be an integer, not 2.7"),
        ({"m": "2"}, "must be an integer, not '2'"),
        ({"m": True}, "must be an integer, not True"),
        ({"n_active": True}, "must be an integer, not True"),
        ({"m": np.ones(2, np.int32)}, "must be an integer, not a ndarray"),
        ({"m": -1}, "must be at least 0, not -1"),
        ({"m": 1, "mm": 1}, "no size `mm`"),
        ({"m": 1, "eps": 1e-6, "esp": 1e-6}, "no size `esp`"),
    ],
)
def test_no_sizes(given, what):
    """A size is an integer from 0 on that the kernel has a name for; nothing is cut to one."""
    with pytest.raises(ProblemError) as error:
        sizes_of(given, variant(numbers=NUMBERS))
    assert error.value.what == what


def test_a_truth():
    """A size that no array has elements of may be a truth, as one that says whether."""
    assert sizes_of({"out_dtype": True}, variant()) == {"out_dtype": 1}


def test_numbers_choose_nothing():
    """Sizes are what is left of a call without its numbers; numpy's integers are integers."""
    made = variant(numbers=NUMBERS)
    assert sizes_of({"m": np.uint8(200), "eps": -1}, made) == {"m": 200}
    assert names_of([variant(), made]) == {*SIZES, "eps", "alpha"}
