"""The words of a manifest, and the values they stand for."""

import pytest

from kernelpack.manifest import words
from kernelpack.spec.params import Access
from kernelpack.spec.tensormap import Element, Fill, Interleave, Promotion, Swizzle


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        (words.ACCESSES, Access),
        (words.SWIZZLES, Swizzle),
        (words.INTERLEAVES, Interleave),
        (words.PROMOTIONS, Promotion),
        (words.FILLS, Fill),
    ],
)
def test_every_value_has_one_word(table, kind):
    """Whatever the driver knows, a manifest can say, in one way."""
    assert list(kind) == sorted(table.values())


@pytest.mark.parametrize(
    ("word", "element"),
    [("bf16", Element.BF16), ("e4m3", Element.U8), ("u4_align16", Element.U4_ALIGN16)],
)
def test_elements(word, element):
    """An element is named as the driver does, a byte-wide type also by its own name."""
    assert element == words.ELEMENTS[word]


def test_a_nibble_says_how_it_lies():
    """e2m1 is not an element: whether its nibbles are packed or padded must be said."""
    assert "e2m1" not in words.ELEMENTS
