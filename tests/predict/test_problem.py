"""Problems at their real size: what steers a kernel is as its inputs have it."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack.kernels.registry import known
from kernelpack.predict.planned import PlannedLibrary
from kernelpack.predict.problem import needed_bytes, of_case
from kernelpack.spec.launch import bytes_of
from tests.ops.test_emulated import VARIANT, bundle

ALONE = sorted(stem for stem, d in known().items() if d.steering)
"""Kernels whose steering arrays are made by themselves."""


@pytest.mark.parametrize("stem", ALONE)
def test_what_steers_is_that_of_the_inputs(stem):
    """A problem that is typed has the same offsets, indices and tables in both."""
    definition = known()[stem]
    case = definition.case(definition.emulated)
    made, whole = definition.steering(case), definition.inputs(case)
    assert made
    assert {n: whole[n].tobytes() for n in made} == {n: a.tobytes() for n, a in made.items()}


@pytest.mark.parametrize("stem", ALONE)
def test_all_that_steers_is_there(stem):
    """No whole words of the inputs are left out, but empty ones."""
    definition = known()[stem]
    case = definition.case(definition.emulated)
    made, whole = definition.steering(case), definition.inputs(case)
    words = {n for n, a in whole.items() if a.dtype.kind in "iu" and a.itemsize >= 4 and a.size}
    assert words <= made.keys()


def test_a_typed_problem_is_a_launch(tmp_path):
    """Half a million rows of each of two adapters: sizes, and no rows made."""
    definition = known()["lora_shrink_qkv"]
    case = definition.case({"m": "1048576", "n": "16", "k": "72", "g": "2", "out_dtype": "fp32"})
    launch = of_case(PlannedLibrary(bundle(tmp_path)), definition, case)
    starts = {name: start for start, (_, name) in launch.memory.allocations.items()}
    offsets = launch.memory.bytes[starts["a_offsets"] :][:12].view(np.uint32)
    assert offsets.tolist() == [0, 1 << 19, 1 << 20]


def test_bytes_that_a_problem_takes():
    """All have a state; three offsets and two ids are made too, and of other kernels nothing."""
    definition = known()["lora_shrink_qkv"]
    case = definition.case({"m": "1048576", "n": "16", "k": "72", "g": "2", "out_dtype": "fp32"})
    sizes = {**case.sizes, "sm_count": 148}
    alone = needed_bytes(None, VARIANT, sizes)
    assert alone == sum(bytes_of(VARIANT, sizes).values())
    assert needed_bytes(definition, VARIANT, sizes) == alone + 4 * (3 + 2) * 4


def test_bytes_where_all_inputs_are_made():
    """A definition without steering arrays of its own makes the rows as well."""
    definition = replace(known()["lora_shrink_qkv"], steering=None)
    case = definition.case({"m": "1048576", "n": "16", "k": "72", "g": "2", "out_dtype": "fp32"})
    sizes = {**case.sizes, "sm_count": 148}
    rows = 1048576 * 72 * 2
    assert needed_bytes(definition, VARIANT, sizes) > needed_bytes(None, VARIANT, sizes) + 4 * rows
