"""Inputs and expected outputs that a worker keeps: asked for once, few, and none of one's own."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack.kernels.definition import Expected
from kernelpack.kernels.registry import KERNELS
from kernelpack.verify import known


@pytest.fixture
def asked():
    return []


@pytest.fixture
def definition(asked):
    """A kernel's definition that notes what is asked of it."""

    def inputs(case):
        asked.append(("inputs", case))
        return {"a": np.zeros(100)}

    def expected(case, arrays):
        asked.append(("expected", case))
        return {"c": Expected(value=arrays["a"], bound=arrays["a"])}

    return replace(KERNELS["lora_shrink_qkv"], inputs=inputs, expected=expected)


@pytest.fixture
def cases(definition):
    return definition.telling()[:3]


def ask(kept, definition, case):
    arrays = kept.inputs(definition, case)
    return kept.expected(definition, case, arrays)


def test_a_case_is_asked_for_once(definition, cases, asked):
    kept = known.Cases()
    first, again = (ask(kept, definition, cases[0]) for _ in range(2))
    assert first is again
    assert asked == [("inputs", cases[0]), ("expected", cases[0])]


def test_each_case_has_its_own(definition, cases, asked):
    kept = known.Cases()
    assert ask(kept, definition, cases[0]) is not ask(kept, definition, cases[1])
    assert len(asked) == 4


def test_what_was_asked_for_long_ago_is_forgotten(definition, cases, asked, monkeypatch):
    monkeypatch.setattr(known, "MOST_BYTES", 5000)  # two cases of 2400
    kept = known.Cases()
    for index in (0, 1, 0, 2, 0, 1):
        ask(kept, definition, cases[index])
    assert [case for what, case in asked if what == "inputs"] == [*cases, cases[1]]


def test_an_oracle_of_ones_own_is_asked_each_time(definition, cases, asked):
    kept, own = known.Cases(), replace(definition, origin="oracle.py")
    ask(kept, own, cases[0])
    ask(kept, own, cases[0])
    assert len(asked) == 4
