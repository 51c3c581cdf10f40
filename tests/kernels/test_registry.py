"""Kernels are found by stem."""

import pytest

from kernelpack.errors import ProblemError
from kernelpack.kernels.registry import KERNELS, find


def test_find():
    """A kernel's definition carries its stem."""
    assert find("lora_shrink_qkv").stem == "lora_shrink_qkv"


@pytest.mark.parametrize("definition", KERNELS.values(), ids=KERNELS)
def test_case_names_are_unique(definition):
    """No two cases with the same types have one name."""
    named = [(c.name, *_types(c)) for c in definition.cases()]
    assert len(named) == len(set(named))


def _types(case):
    return (code for size, code in case.sizes.items() if size.endswith("dtype"))


@pytest.mark.parametrize("definition", KERNELS.values(), ids=KERNELS)
def test_small_cases_are_cases(definition):
    """What an emulator runs is part of what a GPU runs."""
    assert set(definition.small()) < set(definition.cases())


@pytest.mark.parametrize(
    ("stem", "hint"),
    [("lora_shrink", "did you mean `lora_shrink_qkv`?"), ("xyz", "known: kv_cache_append, ")],
)
def test_unknown(stem, hint):
    """An unknown stem names the nearest, or all."""
    with pytest.raises(ProblemError) as caught:
        find(stem)
    assert hint in str(caught.value)


@pytest.mark.parametrize("definition", KERNELS.values(), ids=KERNELS)
def test_telling_cases_are_small(definition):
    """What every variant is verified on is part of what an emulator runs."""
    assert set(definition.telling()) < set(definition.small())
