"""The JSON of an entry."""

import json
from functools import reduce
from operator import getitem

import pytest

from kernelpack.bundle.document import document
from tests.fakes.bundles import entry
from tests.fakes.variants import variant

LINE = document(variant(), entry(variant()).resources, {"image": "ab"})
VALUE = json.loads(LINE)


def test_canonical():
    """Keys are sorted and there is no space: equal values give equal bytes."""
    again = json.dumps(VALUE, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert again.encode() == LINE


def test_one_line():
    """A document is one line, whatever its texts hold."""
    assert b"\n" not in LINE


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (("id",), variant().id),
        (("axes", "TILE"), 64),
        (("launch", "grid"), ["2 * (cdiv(m, 64) + n_active)", "1", "1"]),
        (("guards", 0, "reason"), "k must be a multiple of 8"),
        (("params", 0, "map", "swizzle"), "b128"),
        (("params", 5), {"name": "m", "offset": 208, "bytes": 4, "scalar": "u32", "value": "m"}),
        (("params", 1, "pointer"), "c"),
        (("arguments", 0, "access"), "write"),
        (("resources", "registers"), 128),
        (("budget", "registers"), 168),
        (("digests", "image"), "ab"),
    ],
)
def test_says_what_the_variant_says(keys, expected):
    """A reader finds each fact by its name."""
    assert expected == reduce(getitem, keys, VALUE)
