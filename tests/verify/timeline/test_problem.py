"""What a launch is recorded on."""

import numpy as np
import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.errors import ProblemError, SelectionError
from kernelpack.formats.dtype import DType
from kernelpack.verify.timeline.problem import known, plain
from kernelpack.verify.timeline.record import Wish, record
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
