"""The decode attention: the oracle against plain arithmetic, splits, the rules of a problem."""

import itertools
from dataclasses import replace
from math import exp, inf, log

import numpy as np
import pytest

from kernelpack.errors import ProblemError
from kernelpack.kernels.kv_operand.rows import FORMATS
from kernelpack.kernels.mla_decode_attention.cases import GROUPS, ROWS, cases, small
from kernelpack.kernels.mla_decode_attention.definition import MLA_DECODE_ATTENTION
from kernelpack.kernels.mla_decode_attention.inputs import Case, Source, inputs
from kernelpack.kernels.mla_decode_attention.partitions import partitions
from kernelpack.kernels.mla_decode_attention.positions import UNIT, rows_of, split
from kernelpack.kernels.mla_decode_attention.problem import Lists, Sequences
from kernelpack.kernels.mla_decode_attention.typed import EMULATED, case_of
from kernelpack.kernels.mla_decode_combine import definition as combine
from kernelpack.kernels.mla_decode_combine.problem import Case as Joined
from kernelpack.kernels.mla_decode_combine.problem import Problem as Joining
from kernelpack.kernels.sparse_mla_prefill.rows import dequantise
from kernelpack.spec.arch import Arch

LISTED = Case(
    name="listed",
    t=3,
    h=2,
    source=Source(topk=70, spare=3, page=3, blocks=30, layers=2, indices="bad", lengths="uneven"),
    extra=Source(topk=9, page=5, blocks=4, lengths="uneven"),
    seed=3,
)
PAGED = Case(
    name="paged",
    t=4,
    h=2,
    source=Source(topk=0, page=3, blocks=40),
    added=(2, 0, 1),
    cached=(10, 4, 30),
    pages=9,
    causal=True,
)


def keys_by_hand(case, arrays, token):
    """The keys of a token, one after the other, by the words of the op."""
    problem, found = case.problem, []
    if case.source.topk:
        for of, source in (("", case.source), ("extra_", case.extra)):
            length = int(arrays[f"{of}topk_lengths"][token])
            for j in range(min(max(length, 0), source.topk)):
                entry = int(arrays[f"{of}indices"][token * (source.topk + source.spare) + j])
                if 0 <= entry < source.page * source.blocks:
                    block, offset = divmod(entry, source.page)
                    found.append((f"{of}kv", block * source.pool.block_stride + offset))
        return found
    offsets = arrays["row_offsets"].tolist()
    for b, (begin, end) in enumerate(itertools.pairwise(offsets)):
        if begin <= token < end:
            for place in range(int(arrays["cache_lengths"][b]) + token - begin + 1):
                page, offset = divmod(place, case.source.page)
                if page >= case.pages:
                    continue
                block = int(arrays["table"][b * problem.sequences.table_stride + page])
                found.append(("kv", block * case.source.pool.block_stride + offset))
    return found


def by_hand(case, arrays, token, head):
    """Out and lse of a head by the formula, a key at a time."""
    problem, width = case.problem, case.row.width
    at = token * problem.q_token_stride + head * problem.q_head_stride
    q = arrays["q"][at : at + width].astype(float)
    scores, values = [], []
    for kv, row in keys_by_hand(case, arrays, token):
        key = dequantise(case.row, arrays[kv].reshape(-1, case.row.bytes)[row : row + 1])[0]
        scores.append(case.scale * float(q @ key))
        values.append(key[:512])
    if not scores:
        return np.zeros(512), inf
    out = sum(exp(x) * v for x, v in zip(scores, values, strict=True))
    return out / sum(map(exp, scores)), log(sum(map(exp, scores)))


@pytest.mark.parametrize("case", [LISTED, PAGED], ids=lambda case: case.name)
@pytest.mark.parametrize("row", ["bf16_576", "fp8_656"])
@pytest.mark.parametrize("token", range(3))
def test_the_oracle_is_the_formula(case, row, token):
    """Out and lse are what the formula gives, a key at a time; of a padding token, nothing."""
    case = replace(case, row=FORMATS[row])
    arrays = inputs(case)
    found = MLA_DECODE_ATTENTION.expected(case, arrays)
    out, lse = by_hand(case, arrays, token, 1)
    assert out == pytest.approx(found["out"].value[token, 1], rel=1e-6, abs=1e-9)
    assert lse == pytest.approx(found["lse"].value[token, 1], rel=1e-6)


@pytest.mark.parametrize("splits", [2, 3, 7])
def test_splits_are_the_whole(splits):
    """What the combine's oracle makes of the parts is the whole, sinks too."""
    case = replace(LISTED, source=replace(LISTED.source, topk=300, page=40), sink=True)
    whole = MLA_DECODE_ATTENTION.expected(case, inputs(case))
    arrays = inputs(replace(case, partitions=splits, sink=True))
    parts = MLA_DECODE_ATTENTION.expected(replace(case, partitions=splits), arrays)
    given = {name: part.value for name, part in parts.items()}
    joining = Joining(t=case.t, h=case.h, partitions=splits, sink=True)
    joined = Joined(name="t", problem=joining)
    found = combine.expected(joined, given | {"sink": arrays["sink"]})
    for name in ("out", "lse"):
        assert found[name].value == pytest.approx(whole[name].value, rel=1e-9, abs=1e-12)


def test_the_second_source_begins_at_a_tile():
    """Positions between the lists are of no row; rows of the second come after the first's."""
    arrays = inputs(replace(LISTED, source=replace(LISTED.source, lengths="65")))
    rows = rows_of(replace(LISTED, source=replace(LISTED.source, lengths="65")).problem, arrays, 0)
    length = int(np.clip(arrays["extra_topk_lengths"][0], 0, 9))
    assert len(rows) == (128 + length if length else 65)
    assert (rows[65:128] == -1).all()
    assert (rows[128:] >= LISTED.source.pool.rows).all() or not length


@pytest.mark.parametrize(
    ("positions", "splits", "least", "expected"),
    [
        (0, 2, 1, [(0, 0), (0, 0)]),
        (1, 2, 1, [(0, 128), (128, 128)]),
        (300, 2, 1, [(0, 256), (256, 384)]),
        (300, 7, 1, [(0, 128), (128, 256), (256, 384), *[(384, 384)] * 4]),
        (300, 3, 2, [(0, 256), (256, 384), (384, 384)]),
        (1280, 3, 1, [(0, 512), (512, 1024), (1024, 1280)]),
    ],
)
def test_split(positions, splits, least, expected):
    """Even shares of 128 positions, none of fewer than the least; the last ones may be empty."""
    problem = replace(LISTED, partitions=splits, split_units=least).problem
    found = [split(problem, positions, number) for number in range(splits)]
    assert expected == [(part.start, part.stop) for part in found]


BAD = [
    ("h", {"h": 129}, "`h` must be 1 to 128, not 129"),
    ("partitions", {"partitions": 257}, "`num_partitions` must be 1 to 256, not 257"),
    ("units", {"split_units": 0}, "`split_units` must be 1 to below 2.24, not 0"),
    ("stride", {"q_head_stride": 580}, "`q_head_stride` must be a multiple of 8 elements"),
    ("lists", {"extra_lists": Lists(topk=5, stride=4)}, "`extra_indices_stride` must be from topk"),
    ("uneven", {"sequences": Sequences(count=2)}, "`q` must be a multiple of 2 tokens without"),
    ("lengths", {"lengths_of_sequences": True}, "`lengths_of_sequences` must be left out where no"),
    ("dead", {"dead_lse": 0.0}, "`dead_lse` must be inf or -inf"),
]


@pytest.mark.parametrize(("changes", "says"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_rules(changes, says):
    """A number that breaks a rule is named, with what would be right."""
    with pytest.raises(ProblemError, match=f"mla_decode_attention: {says}"):
        replace(LISTED.problem, **changes).check()


def test_cases_keep_the_rules():
    """Every case is a problem that a caller may have, and has a name of its own."""
    for rows in ROWS:
        for case in cases(rows):
            case.problem.check()
    assert len({case.name for case in cases()}) == len(cases())


def units(case):
    """How many units of keys the heads' tiles of a case have, 16 heads a tile."""
    arrays = inputs(case)
    tokens = (len(rows_of(case.problem, arrays, token)) for token in range(case.t))
    return sum(-(-keys // UNIT) for keys in tokens) * -(-case.h // 16)


def test_small_cases_are_small():
    """An emulator needs a second or less for a unit of keys."""
    assert {case.name: units(case) for case in small() if units(case) > 12} == {}


def test_groups():
    """Each group has cases, and what differs in who waits for whom is in groups of its own."""
    kinds = {case.kind for case in small()}
    groups = {MLA_DECODE_ATTENTION.group(kind) for kind in kinds}
    assert set(GROUPS) < groups
    assert {"dense", "dense_splits", "dense_folds", "second", "telling_dense"} < groups


def test_typed():
    """Sizes as a person types them: listed keys, or all of a sequence."""
    assert case_of({**EMULATED, "h": "9"}).problem.h == 9
    dense = case_of({**EMULATED, "topk": "0", "cached": "100"}).problem
    assert (dense.lists, dense.sequences.pages) == (None, 2)
    with pytest.raises(ProblemError, match="unknown lengths `odd`"):
        case_of({"lengths": "odd"})


@pytest.mark.parametrize(
    ("tokens", "heads", "keys", "expected"),
    [
        (1, 128, 2048, 16),
        (16, 128, 2048, 4),
        (64, 128, 2048, 1),
        (256, 128, 2048, 1),
        (8, 8, 2048, 16),
        (8, 16, 2048, 16),
        (64, 16, 2048, 2),
    ],
)
def test_partitions(tokens, heads, keys, expected):
    """As many splits as fill 132 multiprocessors once; one where tokens do."""
    assert partitions(tokens, heads, keys, 132) == expected


@pytest.mark.parametrize("name", ["telling_two_sources", "telling_dense"])
def test_what_nobody_attends_to_is_no_number(name):
    """Rows that no key names are NaN: a kernel that reads one is found."""
    (case,) = (case for case in small() if case.name.endswith(name))
    arrays = inputs(case)
    rows = arrays["kv"].reshape(-1, case.row.bytes)
    used = [rows_of(case.problem, arrays, token) for token in range(case.t)]
    used = np.unique(np.concatenate(used))
    used = used[(used >= 0) & (used < len(rows))]
    assert (rows == 0xFF).all(1).sum() == len(rows) - len(used)


def test_splits_of_e4m3_have_hoppers_bounds():
    """Hopper's tensor cores cut sums of e4m3 sooner: more is allowed there, of each split too."""
    case = replace(LISTED, row=FORMATS["fp8_512"], partitions=2)
    found = MLA_DECODE_ATTENTION.expected(case, inputs(case))["partial_lse"]
    assert (found.on(Arch("sm_90a")).bound >= found.bound).all()
    assert (found.on(Arch("sm_90a")).bound > found.bound).any()
