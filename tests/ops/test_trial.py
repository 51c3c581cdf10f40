"""A case on a GPU that is pretended: what goes up, what a wrong output looks like."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack.kernels.lora_shrink_qkv.definition import LORA_SHRINK_QKV
from kernelpack.kernels.lora_shrink_qkv.problem import Case
from kernelpack.ops.trial import GUARD_BYTES, Trial
from tests.ops.bench import Bench

CASE = Case(name="t", g=3, n=8, k=16, tokens=(2, 3), ids=(2, -1))


class Computing(Bench):
    """A GPU whose kernel writes what a test sets: the oracle's values, and then `spoil`."""

    def __init__(self, folder, spoil):
        super().__init__(folder)
        self.trial = Trial(self.library, LORA_SHRINK_QKV, CASE)
        launch = self.cuda._launch

        def compute(*arguments):
            code = launch(*arguments)
            values = self.trial.expected["c"].value.astype(CASE.out_dtype.numpy)
            self.cuda.on_cuMemcpyHtoD(self.parameter("c"), values.ctypes.data, values.nbytes)
            spoil(self, self.parameter("c"), values.nbytes)
            return code

        self.cuda._launch = compute
        self.cuda.__post_init__()
        self.library = replace_driver(self)
        self.trial.library = self.library

    @property
    def comparison(self):
        (comparison,) = self.trial.check(self.trial.select())
        return comparison


def replace_driver(bench):
    """The same bundle on the driver whose launch has changed."""
    from kernelpack.load.load import load
    from kernelpack.runtime.driver import Driver

    return load(bench.library.bundle.path, driver=Driver(bench.cuda))


def nothing(bench, address, size):
    pass


def value(bench, address, size):
    bench.cuda.on_cuMemsetD8(address + 6, 0x40, 2)


def nan(bench, address, size):
    bench.cuda.on_cuMemsetD8(address + size - 2, 0xFF, 2)


def before(bench, address, size):
    bench.cuda.on_cuMemsetD8(address - 1, 0, 1)


def after(bench, address, size):
    bench.cuda.on_cuMemsetD8(address + size + GUARD_BYTES - 1, 0, 1)


def test_right(tmp_path):
    """The oracle's values rounded once are within the bound."""
    comparison = Computing(tmp_path, nothing).comparison
    assert comparison.is_right, str(comparison)


@pytest.mark.parametrize("spoil", [value, nan, before, after], ids=lambda f: f.__name__)
def test_wrong(tmp_path, spoil):
    """A wrong value, a value never written and a byte outside the output are found."""
    assert not Computing(tmp_path, spoil).comparison.is_right


def test_wrong_element(tmp_path):
    """The worst element is named with what was found and what was expected."""
    comparison = Computing(tmp_path, value).comparison
    assert (comparison.index, f"{comparison.found:g}") == ((0, 0, 3), "3")
    assert "c[0, 0, 3] = 3, expected" in str(comparison)


def test_guards_in_text(tmp_path):
    """Memory written around the output is reported."""
    assert "memory around it was written" in str(Computing(tmp_path, before).comparison)


@pytest.mark.parametrize("offset", [-1, 0, 5 * 16 * 2], ids=["before", "within", "after"])
def test_disturbed(tmp_path, offset):
    """An input that a kernel wrote to, or around, is named, and put back."""
    bench = Bench(tmp_path)
    trial = Trial(bench.library, LORA_SHRINK_QKV, CASE)
    assert trial.disturbed() == []
    bench.cuda.on_cuMemsetD8(trial._inputs["a"].address + offset, 0x5A, 1)
    assert (trial.disturbed(), trial.disturbed()) == (["a"], [])


def test_inputs(tmp_path):
    """The device holds the case's arrays."""
    bench = Bench(tmp_path)
    trial = Trial(bench.library, LORA_SHRINK_QKV, replace(CASE, rows_after=1))
    found = np.empty_like(trial.arrays["b"])
    trial._inputs["b"].memory.read(found, GUARD_BYTES)
    assert found.tobytes() == trial.arrays["b"].tobytes()


def test_time(tmp_path):
    """A time is the median of several launches, in microseconds."""
    bench = Bench(tmp_path)
    trial = Trial(bench.library, LORA_SHRINK_QKV, CASE)
    assert trial.time(trial.select(), repeats=3) == 1000.0
    assert len(bench.cuda.launches) == 4
