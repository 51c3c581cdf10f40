"""A compiled variant is checked against each claim of its manifest."""

from dataclasses import replace

import pytest

from kernelpack.build.budget import check_resources
from kernelpack.errors import BudgetError
from kernelpack.spec.artifact import Resources
from kernelpack.spec.params import Slot
from tests.fakes.variants import variant

VARIANT = variant()
SLOTS = VARIANT.slots
RESOURCES = Resources(
    entry=VARIANT.entry,
    target="sm_90a",
    registers=168,
    shared_bytes=132_448,
    stack_bytes=0,
    spill_bytes=0,
    slots=SLOTS,
)


def test_what_fits():
    """Up to its budget a variant may use everything."""
    check_resources(VARIANT, RESOURCES)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"spill_bytes": 4}, "spills 4 bytes a thread"),
        ({"registers": 169}, "uses 169 registers a thread, more than 168"),
        ({"shared_bytes": 132_449}, "uses 232449 bytes of shared memory, more than 232448"),
        ({"entry": "other"}, f"the entry is `other`, not `{VARIANT.entry}`"),
        ({"target": "sm_100a"}, "the machine code is for sm_100a, not sm_90a"),
        ({"slots": SLOTS[:-1]}, f"takes {len(SLOTS) - 1} parameters, not {len(SLOTS)}"),
        (
            {"slots": (Slot(0, 64), *SLOTS[1:])},
            "parameter `a_map` is 64 bytes at offset 0, not 128 at 48",
        ),
    ],
    ids=lambda value: "".join(value) if isinstance(value, dict) else "",
)
def test_what_does_not(change, says):
    """The error names the variant, what it uses, and what it may."""
    with pytest.raises(BudgetError) as caught:
        check_resources(VARIANT, replace(RESOURCES, **change))
    assert says in caught.value.what
    assert caught.value.where == VARIANT.id


def test_all_at_once():
    """One error lists every claim that does not hold."""
    with pytest.raises(BudgetError, match=r"spills 4 bytes.*uses 200 registers"):
        check_resources(VARIANT, replace(RESOURCES, spill_bytes=4, registers=200))
