"""Logical indices to encoded ones: the oracle on the edges of every storage."""

import numpy as np
import pytest

from kernelpack.errors import ProblemError
from kernelpack.kernels.kv_operand.lookup import Lookup
from kernelpack.kernels.kv_remap_indices.definition import KV_REMAP_INDICES, expected
from kernelpack.kernels.kv_remap_indices.problem import Problem, inputs

NONE = np.zeros(0, np.uint32)
TABLE = np.array([7, 2, 99, 0, 2**32 - 1, 3], np.uint32)  # two sequences of three pages
PAGED = Lookup(sequences=2, pages=3, page=16, blocks=8, table_stride=3, has_table=True)


@pytest.mark.parametrize(
    ("b", "t", "encoded"),
    [
        (0, 0, 7 * 16),
        (0, 15, 7 * 16 + 15),
        (0, 16, 2 * 16),
        (1, 3, 3),
        (1, 47, 3 * 16 + 15),
        (0, 32, -1),  # block 99 of 8
        (1, 16, -1),  # block -1
        (0, 48, -1),  # past the table
        (1, 2**31 - 1, -1),
        (2, 0, -1),  # no such sequence
        (-1, 0, -1),
        (2**32 - 1, 0, -1),
        (0, -1, -1),
        (0, -5, -5),  # passes as it is
        (9, -(2**31), -(2**31)),
    ],
)
def test_paged(b, t, encoded):
    """block * page + offset; -1 where there is no sequence, page or block."""
    assert PAGED.encode(np.array([b]), np.array([t]), TABLE, NONE).tolist() == [encoded]


@pytest.mark.parametrize(
    ("lookup", "b", "t", "encoded"),
    [
        (Lookup(sequences=3, page=50, blocks=9, has_table=True), 1, 49, 2 * 50 + 49),
        (Lookup(sequences=3, page=50, blocks=9, has_table=True), 1, 50, -1),
        (Lookup(sequences=3, page=50, blocks=9, has_table=True), 2, 0, -1),  # slot 99
        (Lookup(sequences=9, page=50, blocks=9), 8, 49, 449),
        (Lookup(sequences=9, page=50, blocks=9), 9, 0, -1),
        (Lookup(sequences=2, page=70, blocks=1, has_offsets=True), 1, 0, 20),
        (Lookup(sequences=2, page=70, blocks=1, has_offsets=True), 1, 39, 59),
        (Lookup(sequences=2, page=70, blocks=1, has_offsets=True), 1, 40, -1),
        (Lookup(sequences=2, page=55, blocks=1, has_offsets=True), 1, 39, -1),  # past the rows
        (Lookup(sequences=2, page=70, blocks=1, has_offsets=True), 2, 0, -1),
    ],
)
def test_other_storages(lookup, b, t, encoded):
    """Slots by a table or by number, and sequences one after another."""
    table, offsets = np.array([7, 2, 99], np.uint32), np.array([0, 20, 60], np.uint32)
    assert lookup.encode(np.array([b]), np.array([t]), table, offsets).tolist() == [encoded]


def test_a_loop():
    """A paged case of garbage against the definition, entry by entry."""
    case = KV_REMAP_INDICES.telling()[0]
    arrays, found = inputs(case), expected(case, inputs(case))["out"].value
    lookup = case.problem.lookup
    for t in range(case.t):
        b = int(arrays["token_sequences"][t])
        for j in range(case.k):
            place = int(arrays["indices"][t * (case.k + case.spare) + j])
            encoded = place if place < 0 else -1
            if b < case.sequences and 0 <= place < case.pages * case.page:
                block = int(arrays["table"][b * lookup.table_stride + place // case.page])
                if block < case.blocks:
                    encoded = block * case.page + place % case.page
            assert encoded == found[t, j]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"t": -1}, "`t` must be from 0 to below 2^31, not -1"),
        ({"indices_stride": 4}, "`indices_stride` must be from k = 5 to below 2^31, not 4"),
        ({"lookup": Lookup(sequences=1, page=0, blocks=1)}, "`page` must be at least 1 row, not 0"),
        (
            {"lookup": Lookup(sequences=1, page=2**20, blocks=2**11)},
            "`blocks * page` must be below 2^31, not 2147483648",
        ),
        (
            {"lookup": Lookup(sequences=1, page=1, blocks=1, pages=4, table_stride=3)},
            "`table_stride` must be from 4, the pages, not 3",
        ),
    ],
)
def test_rules(changes, rule):
    """Sizes that the kernel does not take are named."""
    given = {"t": 2, "k": 5, "indices_stride": 5, "lookup": PAGED}
    with pytest.raises(ProblemError) as error:
        Problem(**(given | changes)).check()
    assert rule in str(error.value)
