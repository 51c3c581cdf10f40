"""Sparse MLA as faults are seeded into it: a problem in which every ring of every role turns."""

from dataclasses import replace

from kernelpack.kernels.kv_operand.rows import FORMATS
from kernelpack.kernels.mla_decode_attention import inputs as decode
from kernelpack.kernels.mla_decode_attention import reference as decode_oracle
from kernelpack.kernels.sparse_mla_prefill.inputs import Case, inputs
from kernelpack.kernels.sparse_mla_prefill.reference import expected
from kernelpack.kernels.sparse_mla_prefill.rows import FP8
from kernelpack.spec.arch import Arch
from tests.mutation.subject import ROOT, Subject

_ATTENDED = Case(
    name="mutation",
    t=4,
    h=70,
    topk=470,
    spare=4,
    page=16,
    blocks=30,
    layers=2,
    layer=1,
    indices="bad",
    lengths="garbage",
    values="rising",
    sink=True,
    dead_lse=float("-inf"),
    q_gap=8,
    seed=5,
)
"""In turns a token without keys, and one whose length says more entries than there are, some bad:
every key of the first such weighs something, the scores of the second rise. Nobody attends to
row 0, so that it is NaN: who copies it for an entry that does not count is found."""


_NARROW = replace(
    _ATTENDED,
    h=9,
    topk=150,
    row=FP8[1].row,
    kv_scales=FP8[1].kv_scales,
)
"""The same of rows of e4m3 with a scale each, of fewer heads and two rounds of keys."""


def _mla(
    name: str, doc: str, *, arch: str, heads: int, warps: int, case: Case, cluster: int = 1
) -> Subject:
    """Sparse MLA over four blocks of keys or more: every ring turns."""
    return Subject(
        name=f"mla_{arch.removesuffix('a').replace('_', '')}_{name}",
        doc=doc,
        manifest=ROOT / "manifests" / "sparse_mla_prefill.yaml",
        arch=arch,
        axes={"ROW": case.row.name, "HEADS": heads, "SCALE_BLOCK": 0, "QUERY": "bf16"},
        sizes=case.sizes | {"sm_count": cluster},
        arrays=lambda: inputs(case),
        oracle=lambda arrays: {
            name: output.on(Arch(arch)) for name, output in expected(case.problem, arrays).items()
        },
        warps=warps,
        cluster=cluster,
        is_shown_elsewhere=True,
    )


_SPLIT = decode.Case(
    name="mutation",
    t=2,
    h=5,
    partitions=3,
    source=decode.Source(topk=200, spare=3, page=16, blocks=30, indices="bad"),
    extra=decode.Source(topk=150, page=7, blocks=30, layers=2, lengths="uneven"),
    values="rising",
    q_gap=8,
    seed=5,
)
"""Tokens of 200 entries and up to 150 of a second cache, which begin in the second half of the
first split or at the second one: splits of up to four blocks; the last is empty."""


_FOLDED = decode.Case(
    name="mutation",
    t=8,
    h=7,
    partitions=2,
    source=decode.Source(topk=0, page=16, blocks=40),
    added=(4, 2, 1, 1),
    cached=(253, 120, 9, 70),
    pages=17,
    causal=True,
    seed=5,
)
"""Of the first sequence's tokens the last sees a key of a third unit, so that its splits are
others; of the second's both are alike."""


def _decode(name: str, doc: str, case: decode.Case) -> Subject:
    """A decode step of 64-head tiles: what is its own, and the roles of one CTA."""
    return Subject(
        name=f"mla_sm100_{name}",
        doc=doc,
        manifest=ROOT / "manifests" / "mla_decode_attention.yaml",
        arch="sm_100a",
        axes={"ROW": case.row.name, "HEADS": 64},
        sizes=case.sizes | {"sm_count": 1},
        arrays=lambda: decode.inputs(case),
        oracle=lambda arrays: decode_oracle.expected(case.problem, arrays),
        warps=11,
        is_shown_elsewhere=True,
    )


_PAGES = decode.Case(
    name="mutation",
    t=6,
    h=5,
    source=decode.Source(topk=0, page=16, blocks=40),
    added=(1, 3, 1),
    cached=(175, 60, -9),
    pages=9,
    causal=True,
    sink=True,
    seed=5,
)
"""A sequence that is longer than its pages, one with more new tokens, one whose length is not a
number of keys; and a token of none."""


def _hopper(name: str, doc: str, case: decode.Case, heads: int) -> Subject:
    """A decode step on Hopper, all by one CTA: what is its own beside sparse prefill."""
    return Subject(
        name=f"mla_sm90_{name}",
        doc=doc,
        manifest=ROOT / "manifests" / "mla_decode_attention.yaml",
        arch="sm_90a",
        axes={"ROW": case.row.name, "HEADS": heads},
        sizes=case.sizes | {"sm_count": 1},
        arrays=lambda: decode.inputs(case),
        oracle=lambda arrays: decode_oracle.expected(case.problem, arrays),
        warps=12,
        is_shown_elsewhere=True,
    )


ATTENTION = (
    _hopper(
        "decode",
        "MLA decode: three splits of keys in two caches, one empty, tiles of 64 heads.",
        replace(_SPLIT, row=FORMATS["fp8_656"]),
        64,
    ),
    _hopper("pages", "MLA decode: dense keys, causal, sinks, tiles of 8 heads.", _PAGES, 8),
    _decode(
        "decode", "MLA decode: one CTA, three splits of keys in two caches, one empty.", _SPLIT
    ),
    _decode("fold", "MLA decode: tokens of a sequence share a tile, dense keys, causal.", _FOLDED),
    _mla(
        "pair",
        "Sparse MLA: a pair of CTAs, 70 heads, four blocks of keys; tokens without any.",
        arch="sm_100a",
        heads=128,
        warps=16,
        case=_ATTENDED,
        cluster=2,
    ),
    _mla(
        "heads_64",
        "Sparse MLA: one CTA for all, 64 heads of a token and then 6, four rounds of keys.",
        arch="sm_90a",
        heads=64,
        warps=12,
        case=_ATTENDED,
    ),
    _mla(
        "pair",
        "Sparse MLA: a pair of CTAs for all, 70 heads, rows of 656 bytes, three rounds of keys.",
        arch="sm_90a",
        heads=128,
        warps=12,
        case=replace(_ATTENDED, row=FORMATS["fp8_656"], topk=300),
        cluster=2,
    ),
    _mla(
        "e4m3",
        "Sparse MLA of e4m3 rows: one CTA for all, 9 heads in a tile of 64.",
        arch="sm_90a",
        heads=64,
        warps=12,
        case=_NARROW,
    ),
)
