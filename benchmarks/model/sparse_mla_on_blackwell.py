"""Write docs/sparse_mla_on_blackwell.md: `python -m benchmarks.model.sparse_mla_on_blackwell`.

The page says where the Blackwell forms of sparse MLA prefill keep what, what each engine has to do
for a block of keys, and what benchmarks/model/sparse_mla.py predicts; and what benchmarks/model/mla_decode.py
does of the decode attention, which has the same forms. A test checks it against this file.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.model.mla_decode import JOIN, LAUNCH, MEMORY, STEPS, Step, best
from benchmarks.model.sparse_mla import (
    FLASHMLA,
    FORMS,
    GHZ,
    MULTIPROCESSORS,
    TOPK,
    Form,
    Machine,
    calibrated,
    cycles,
    measured_cycles,
    teraflops,
)

PAGE = Path(__file__).parents[2] / "docs" / Path(__file__).with_suffix(".md").name
RECORD = PAGE.parents[1] / "benchmarks" / "results" / "sparse_mla_emulated.json"
RATES = (50, 56, 64)  # bytes a cycle that a multiprocessor gathers
SHARED_BYTES, TILE = 232_448, 8192

# A row of a table is a line, however long.
# ruff: noqa: E501
_ABOUT = f"""# Sparse MLA prefill on Blackwell, on paper

<!-- Written by benchmarks/model/sparse_mla_on_blackwell.py: edit that file, then run it. -->

We have no Blackwell GPU: **every time below is predicted, none of ours is measured.** What is sure
is what the emulator proves (numbers, races, barriers) and what the compiler says: no spills, 96 to
128 registers where a CTA has at most 512 threads, and what setmaxnreg moves between them adds up to
the register file.

## Forms

| form | heads | serves | K and V |
| --- | --- | --- | --- |
| pair | 128 by two CTAs, M 128 | bf16 rows; e4m3 rows as they are | each CTA gathers 64 of 128 keys for K, and for V all keys of 256 columns |
| single | 64 by one CTA, weight-stationary M 64 | the same, up to 64 heads | a row is gathered once: its tile is K, and V beside it |
| widened | the same | e4m3 rows with scales of blocks, 656-byte rows | read by threads, scaled in fp32, rounded once to bf16 |

With e4m3 rows that are multiplied as they are Q comes as bf16 and the softmax warps quantise it
first; or it comes as e4m3 with its scales, laid out as rows of the cache are, and TMA puts it where
it is multiplied from.

Tiles of fewer heads would not pay. A CTA gathers {64 * 1152 // 1024} KiB for 64 keys of bf16_576,
which takes {64 * 1152 // 64} to {64 * 1152 // 48} cycles at 64 to 48 bytes a cycle, whatever its heads are, and longer with
what is late. The 64-row MMA takes 1,408 of them. With heads as the MMA's N instead (K and V as its
A, from shared memory), reading A alone takes 1,088, and all operands of 64 heads 1,632: little less
work where the gather binds. Such a tile might gain a shorter softmax; it is not built.

Scores and outputs are multiplied by two threads, so that neither product waits for what the other
still lacks. With one thread and a fixed order the single form of bf16_576 would take 2,350 to
2,420 cycles a block in this model, against about 1,750: its 2.5 blocks of buffers are not enough to
load far ahead.

## Where things are

Shared memory of a CTA, KiB of {SHARED_BYTES // 1024}; barriers, rows, scales and maxima take the rest."""

_TENSOR = """Tensor memory, columns of 512. Of a head's scores the first half of the keys is in lanes 0-63, the
second in lanes 64-127, and so are halves of its outputs; Q lies twice, for both."""

_ENGINES = """## What a block of keys takes

Cycles of each engine for a block. The tensor pipe multiplies 4096 bf16 pairs a cycle and reads
operands at 128 bytes a cycle, whichever takes longer for an MMA; exponentials go 16 a cycle. TMA
writes through a port of its own."""


_EMULATED = """## Run on the emulator

The runs of `python -m benchmarks.sparse_mla_emulated` are in
benchmarks/results/sparse_mla_emulated.json; the tests run a part of the telling cases each time, and
docs/mutation.md has the faults that are seeded into the pair of bf16 rows. Errors are over their
bounds, the worst of all runs; times are a core's, with every check."""

_PARTS = {
    "full-size": "a token of 128 heads and 2048 keys, by each form and kind of rows",
    "held-back": "a token over three blocks of keys, each warp held back in turn, by each form",
    "cut": "rising scores, sums cut as tensor cores cut them, by each form",
    "telling": "cases that have many rules at once, by each variant, eager and lazy",
}


def _predicted() -> str:
    wanted = measured_cycles(Machine(gather=64, latency=0))
    return f"""## Predictions

How fast rows come from L2, and how late, is not public. FlashMLA's kernel (one buffer of K, one
thread that multiplies) takes 394 us for 1024 tokens on a B200, {wanted:.0f} cycles a block: the model's
latency is chosen so that it does, for each of three gather rates. Slower ones than 50 bytes a cycle
cannot have taken that time. Cycles of a block, and TFLOP/s of {MULTIPROCESSORS} multiprocessors at
{GHZ} GHz with {TOPK} keys a token, of operations on 576 or 512 columns of K and 512 of V, whatever
their type. FlashMLA publishes 1450 for bf16_576 and 128 heads. Power is not in the model: at these
rates it may bind first. Widened rows are the exact way, not a fast one: not modelled."""


_DECODE = f"""## Decode

mla_decode_attention has the same forms. A CTA, or a pair, goes through a split of a token's keys,
whole units of 128; with more than one split it stores fp32 outputs, which mla_decode_combine joins.
Predicted with the number of splits that takes least, of rows that come from memory once at
{MEMORY / 1e12} TB/s and at 56 bytes a cycle to a multiprocessor; {LAUNCH * 1e6} us are for a launch and
{JOIN * 1e6:.1f} for the joining kernel's, which starts early. Microseconds, of which *around* is what is
around the blocks of keys: launches, first loads, last stores, joining. The longest of the three is
what binds; blocks and memory overlap.

Few heads: where keys are the sequence's, its tokens share a tile, four of 16 heads, eight of 8, so
that its rows are gathered once for all of them; each row of the tile sees the keys of its token. Of
such tokens the first has the CTA, as long as their keys make as many units; the CTAs of the others,
which come last in the grid, begin and end. Rows that lie one after another, as those of a page do, come sixteen an instruction and
not four.

The shortfall: listed keys, where each token has a list of its own and 16 heads take what 64 do.
CTAs do not stay for a next item, and their last round is as long as the others: 256 tokens
take seven rounds of half a token, of which a fraction of 0.92 is work."""


def page() -> str:
    """docs/sparse_mla_on_blackwell.md."""
    parts = [_ABOUT, _shared(), _TENSOR, _tensor(), _ENGINES, _engines(), _predicted(), _times()]
    parts += [_DECODE, _steps(), _EMULATED, _emulated()]
    return "\n\n".join(parts) + "\n"


def _shared() -> str:
    kib = TILE // 1024
    rows = [
        ("pair, bf16_576", 3 * kib, 8 * kib, "K left 24, right 2 x 48", 16),
        ("pair, bf16_512", 2 * kib, 8 * kib, "K left 2 x 16, right 2 x 48", 16),
        ("single, bf16_576", 3 * kib, "-", "5 sides of 32, 3 ropes of 8", "2 x 8"),
        ("single, bf16_512", 2 * kib, "-", "6 sides of 32", "2 x 8"),
        ("pair, fp8_576 and fp8_640", kib, "2 x 32", "K 3 x 40", "2 x 8"),
        ("pair, fp8_512", "-", "2 x 32", "K 3 x 32", "2 x 8"),
        ("single, fp8_576 and fp8_640", kib, "-", "5 sides of 32, 2 ropes of 16", "2 x 8"),
        ("single, fp8_512", "-", "-", "6 sides of 32", "2 x 8"),
        ("widened, 576 columns", 3 * kib, "-", "K 2 x 72", "2 x 8"),
        ("widened, 512 columns", 2 * kib, "-", "K 3 x 64", "2 x 8"),
    ]
    return _table(("form", "Q", "V", "rows", "weights"), rows)


def _tensor() -> str:
    rows = [
        ("pair, bf16", "0-255", "256-319", "320-511: its right 384 columns"),
        ("single, bf16", "0-255", "256-287, 288-319", "320-511: its right 384 columns"),
        ("fp8_576, fp8_512", "0-255", "256-319, 320-383", "384-511: its 512 latent columns"),
        ("fp8_640", "0-255", "256-319, rope's 320-383", "384-511: its 512 latent columns"),
    ]
    return _table(("form", "outputs", "scores", "Q"), rows)


def _engines() -> str:
    head = ("form", "keys", "scores", "outputs", "tensor pipe", "gathered KiB", "at 56 B", "exp2")
    return _table(head, [_engine(form) for form in FORMS])


def _engine(form: Form) -> tuple[object, ...]:
    return (
        form.name,
        form.block,
        f"{form.key_cycles:.0f}",
        f"{form.value_cycles:.0f}",
        f"{form.tensor:.0f}",
        f"{form.gathered / 1024:.0f}",
        f"{form.gathered / 56:.0f}",
        f"{form.exp2:.0f}",
    )


def _times() -> str:
    machines = [machine for rate in RATES if (machine := calibrated(rate))]
    one = replace(FORMS[2], name="bf16_576, 64 heads, one thread", in_order=True)
    head = ("form", *(f"{m.gather:.0f} B a cycle, {m.latency:.0f} late" for m in machines))
    rows = [(form.name, *(_time(form, m) for m in machines)) for form in (FLASHMLA, *FORMS, one)]
    return _table(head, rows)


def _steps() -> str:
    head = (
        "form",
        "tokens",
        "keys",
        "splits",
        "around",
        "blocks",
        "memory",
        "all",
        "published",
        "binds",
    )
    return _table(head, [_step(step) for step in STEPS])


def _step(step: Step) -> tuple[object, ...]:
    machine = calibrated(56)
    assert machine
    time = best(step, machine)
    parts = (time.around, time.blocks, time.memory, time.whole)
    published = f"{step.whose} {step.published * 1e6:.1f}" if step.whose else "-"
    heads = "" if step.heads >= step.form.heads else f", {step.heads} of them there"
    return (
        f"{step.form.name}{heads}",
        step.tokens,
        step.keys,
        time.splits,
        *(f"{part * 1e6:.1f}" for part in parts),
        published,
        time.bound,
    )


def _emulated() -> str:
    head = ("runs", "how many", "right", "out", "lse", "warp instructions", "minutes of a core")
    runs = json.loads(RECORD.read_text())["runs"]
    listed = {part: [r for w, r in runs.items() if w.startswith(f"{part}:")] for part in _PARTS}
    return _table(head, [_part(part, found) for part, found in listed.items() if found])


def _part(part: str, runs: Sequence[Mapping[str, Any]]) -> tuple[object, ...]:
    worst = [max(run["worst"].get(name, 0) for run in runs) for name in ("out", "lse")]
    effort = sum(run["warp_instructions"] for run in runs)
    minutes = sum(run["processor_seconds"] for run in runs) / 60
    right = sum(run["right"] for run in runs)
    return (_PARTS[part], len(runs), right, *worst, f"{effort:,}", f"{minutes:.0f}")


def _time(form: Form, machine: Machine) -> str:
    return f"{cycles(form, machine):.0f}, {teraflops(form, machine):.0f} TF"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page())
