"""A variant's names."""

from dataclasses import replace

import pytest

from tests.fakes.variants import variant

GOOD = variant()


def test_id():
    """The id is the kernel, the target and the axes in order."""
    assert GOOD.id == "lora_shrink_qkv[arch=sm_90a,dtype=bf16,out=bf16,tile=64]"


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ((), "lora_shrink_qkv"),
        ((("DTYPE", "bf16"), ("TILE", 64)), "lora_shrink_qkv_bf16_64"),
        ((("SHIFT", -1),), "lora_shrink_qkv__1"),
    ],
)
def test_entry_is_a_c_name(axes, expected):
    """The symbol is the kernel and the axis values, with nothing that C forbids."""
    assert expected == replace(GOOD, axes=axes).entry
