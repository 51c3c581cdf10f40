"""What a launch is recorded on."""

import numpy as np
import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.errors import ProblemError, SelectionError
from kernelpack.formats.dtype import DType
from kernelpack.verify.timeline.problem import check_sizes, known, plain
from kernelpack.verify.timeline.record import Wish, record
from tests.fakes.variants import NUMBERS, SIZES
from tests.fakes.variants import variant as shrink
from tests.verify import small


def test_known():
    """A kernel with an oracle is given a case's inputs."""
    problem = known(small.DEFINITION, small.CASES[1])
    expected = small.DEFINITION.inputs(small.CASES[1])["x"]
    np.testing.assert_array_equal(expected, problem.inputs(small.variant())["x"])


def test_sizes():
    """A size is an integer, or a word with its meaning in a manifest."""
    assert plain("k", {"n": "-3", "dtype": "fp32"}).sizes == {"n": -3, "dtype": int(DType.FP32)}


def test_numbers():
    """A number may be an integer, a decimal or an infinity."""
    typed = {"a": "1e-6", "b": "-2.5", "c": "3", "d": "-inf"}
    assert plain("k", typed).sizes == {"a": 1e-6, "b": -2.5, "c": 3, "d": float("-inf")}


@pytest.mark.parametrize("text", ["1e400", "1_0", "1e", "-", "9" * 5000])
def test_no_numbers(text):
    """What begins as a number must be one that a float holds."""
    with pytest.raises(ProblemError, match=r"is not a number|does not fit in 64 bits"):
        plain("k", {"eps": text})


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"eps": None}, "`eps` is not given: what is added"),
        ({"m": None}, "`m` is not given: m"),
        ({"alhpa": "2"}, "no size `alhpa`\nhint: did you mean `alpha`?"),
        (
            {"x": "2"},
            "no size `x`\nhint: it takes m=… n=… k=… g=… n_active=… a_dtype=… out_dtype=…",
        ),
    ],
)
def test_what_a_kernel_takes(given, what):
    """Sizes and numbers without a default are needed, and no others are taken."""
    usual = dict.fromkeys((*SIZES, "eps"), "1") | given
    problem = plain("k", {name: text for name, text in usual.items() if text})
    with pytest.raises(ProblemError) as error:
        check_sizes(problem, shrink(numbers=NUMBERS))
    assert what in str(error.value)


def test_inputs():
    """What a kernel reads: floats are random, integers 0; what it writes is left to the run."""
    sizes = {"m": "4", "k": "8", "n": "2", "g": "1", "n_active": "1"}
    arrays = plain("lora_shrink_qkv", sizes).inputs(shrink())
    assert {name: array.shape for name, array in arrays.items()} == {
        "a": (4, 8),
        "b": (1, 6, 8),
        "a_offsets": (2,),
        "expert_ids": (1,),
    }
    assert np.unique(arrays["a"]).size > 16
    assert not arrays["a_offsets"].any()


def test_runs(bundle):
    """A kernel without an oracle is recorded."""
    recording = record(open_bundle(bundle), Wish(problem=plain("twice", {"n": "40"})))
    assert recording.result.clean


def test_a_size_is_missing(bundle):
    """A kernel without an oracle has no defaults: the size is named, and what it means."""
    with pytest.raises(ProblemError, match="`n` is not given: elements"):
        record(open_bundle(bundle), Wish(problem=plain("twice", {})))


def test_another_kernel(bundle):
    """A kernel that the bundle does not hold: the nearest that it does."""
    with pytest.raises(SelectionError, match="did you mean `twice`"):
        record(open_bundle(bundle), Wish(problem=plain("twcie", {"n": "40"})))
