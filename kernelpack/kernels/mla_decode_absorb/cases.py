"""The cases that are verified: which work, where tokens go, formats of rows, values and gaps."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.block_scaled.inputs import VALUES, laid_out, weights
from kernelpack.kernels.definition import Arrays
from kernelpack.kernels.kv_cache_append.cases import VALUES as ROW_VALUES
from kernelpack.kernels.kv_operand.lookup import Lookup
from kernelpack.kernels.kv_operand.rows import FORMATS, LATENT, ROPE, RowFormat
from kernelpack.kernels.mla_decode_absorb.problem import (
    KERNEL,
    MOST_POSITIONS,
    NO_CACHE,
    NOPE,
    Problem,
)
from kernelpack.kernels.typed import Typed

Random = np.random.Generator

DEFAULTS = {
    "t": "16",
    "h": "128",
    "row": "fp8_656",
    "scales_per_row": "0",
    "power_of_two": "0",
    "page": "64",
    "blocks": "512",
    "values": "normal",
    "seed": "0",
}
"""Sizes where a person types none: a decode step of DeepSeek-V3.2."""
EMULATED = {"t": "3", "h": "2", "page": "16", "blocks": "4"}
"""Sizes that an emulator runs in seconds."""

POSITIONS = 100
"""Rows of freqs."""
_SEQUENCES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One problem to verify, with what its inputs hold.

    Attributes:
        name: what people call it.
        t, h: new tokens, and heads of each.
        absorbs, rotates: which work on queries there is.
        row: the format of rows; None: none are written.
        scales_per_row, power_of_two: as of Problem.
        where: tokens follow sequences that are `paged` or `continuous`, or go to `slots`, or
            `wide_slots` of 64 bits.
        rope: rope values of queries, where no rows say so.
        page, blocks, layers: of the cache; blocks of one layer lie that many blocks apart.
        sequences: that tokens are of.
        gap: NaN between heads, tokens and new rows, elements.
        garbage: whether places hold numbers that name nothing; `padded`: only those of sequences
            past the batch, whose number is on the device.
        gamma: the type of the norm's weights.
        values: what queries hold; new rows of `edges` hold those of the cache append.
        seed: of what is random.

    """

    name: str
    t: int = 5
    h: int = 1
    absorbs: bool = True
    rotates: bool = True
    row: RowFormat | None = FORMATS["fp8_656"]
    scales_per_row: int = 0
    power_of_two: bool = False
    where: str = "paged"
    rope: int = ROPE
    page: int = 16
    blocks: int = 9
    layers: int = 1
    sequences: int = _SEQUENCES
    gap: int = 0
    garbage: str = ""
    gamma: DType = DType.BF16
    values: str = "normal"
    seed: int = 0

    @property
    def problem(self) -> Problem:
        """The numbers alone."""
        rope = self.row.rope if self.row else self.rope
        head = NOPE + rope + self.gap
        by_slot = {"slots": 1, "wide_slots": 2}.get(self.where, 0)
        return Problem(
            t=self.t,
            h=self.h,
            rope=rope,
            absorbs=self.absorbs,
            rotates=self.rotates and rope > 0,
            row=self.row,
            q_token_stride=self.h * head + self.gap,
            q_head_stride=head,
            new_stride=LATENT + rope + self.gap,
            gamma=self.gamma,
            most_positions=POSITIONS if rope else MOST_POSITIONS,
            slot_words=by_slot if self.row else 0,
            position_words=by_slot,
            has_batch=self.garbage == "padded",
            lookup=self.lookup,
            block_stride=self.page * self.layers,
            scales_per_row=self.scales_per_row,
            power_of_two=self.power_of_two,
        )

    @property
    def lookup(self) -> Lookup:
        """Where tokens of sequences are."""
        if not self.row and self.where not in _BY_SEQUENCE:
            return NO_CACHE
        pages = self.blocks // self.sequences if self.where == "paged" else 1
        return Lookup(
            sequences=self.sequences if self.where in _BY_SEQUENCE else 0,
            pages=pages,
            page=self.page,
            blocks=self.blocks,
            table_stride=pages,
            has_table=self.where == "paged" and self.row is not None,
        )

    @property
    def sizes(self) -> dict[str, int]:
        """The problem as the manifest names it."""
        return self.problem.sizes


_BY_SEQUENCE = ("paged", "continuous")


def inputs(case: Case) -> Arrays:
    """Arrays of a case; those it does not have are empty."""
    random, problem = np.random.default_rng(case.seed), case.problem
    rope = problem.rope
    q = VALUES[case.values](random, (case.t, case.h, NOPE + rope)) if case.h else np.zeros(0)
    made = weights(random, "w_uk", (case.h if case.absorbs else 0, LATENT, NOPE))
    return {
        "q": laid_out(q.astype(np.float32), (case.gap, case.gap)),
        **made,
        "freqs": _freqs(random, problem),
        **_new_rows(case, problem, random),
        **_where(case, problem, random),
    }


def _freqs(random: Random, problem: Problem) -> NDArray[np.float32]:
    """Cosine and sine of any angles."""
    if not problem.rope or not (problem.rotates or problem.appends):
        return np.zeros((0, ROPE), np.float32)
    angles = random.uniform(-np.pi, np.pi, (problem.most_positions, ROPE // 2))
    return np.stack([np.cos(angles), np.sin(angles)], -1).astype(np.float32).reshape(-1, ROPE)


def _new_rows(case: Case, problem: Problem, random: Random) -> Arrays:
    if not problem.appends:
        return {"new_kv": np.zeros(0, DType.BF16.numpy), "gamma": np.zeros(0, np.uint8)}
    values = ROW_VALUES[case.values](random, (case.t, LATENT + ROPE))[:, : problem.width]
    gamma = (1 + random.standard_normal(LATENT, np.float32) / 4).astype(case.gamma.numpy)
    return {"new_kv": laid_out(values, (case.gap,)), "gamma": gamma.view(np.uint8)}


def _where(case: Case, problem: Problem, random: Random) -> Arrays:
    """Where tokens go: each to a row of its own."""
    none = np.zeros(0, np.uint32)
    empty = dict.fromkeys(("row_offsets", "lengths", "batch", "slots", "positions", "table"), none)
    if problem.position_words:
        return empty | _slots(case, problem, random)
    return empty | _sequences(case, problem, random)


def _slots(case: Case, problem: Problem, random: Random) -> Arrays:
    slots = random.permutation(case.page * case.blocks)[: case.t].astype(np.int64)
    positions = random.integers(0, POSITIONS, case.t)
    if case.garbage:
        wide = [2**32, 2**40 + 1] if problem.position_words == 2 else []
        zoo = [case.page * case.blocks, *wide, -1, -(2**31), 2**31 - 1, -12345]
        slots[::3] = np.resize(zoo, slots[::3].size)
        positions[1::4] = np.resize([POSITIONS, *wide, -1, 2**31 - 1], positions[1::4].size)
    kind = np.int64 if problem.position_words == 2 else np.int32
    found = {"positions": positions.astype(kind).view(np.uint32)}
    return found | ({"slots": slots.astype(kind).view(np.uint32)} if problem.slot_words else {})


def _sequences(case: Case, problem: Problem, random: Random) -> Arrays:
    """Sequences of any numbers of tokens; of `padded` ones the last third is garbage."""
    lookup, count = problem.lookup, case.sequences
    room = min(lookup.pages * lookup.page, POSITIONS)
    real = count - count // 3 if case.garbage == "padded" else count
    tokens = case.t - 2 if case.garbage else case.t  # the last ones are of nobody
    cuts = np.sort(random.integers(0, tokens + 1, real - 1))
    offsets = np.array([0, *cuts, tokens], np.int64)
    lengths = np.array([random.integers(0, max(1, room - n + 1)) for n in np.diff(offsets)])
    table = random.permutation(case.blocks)[: count * lookup.pages].astype(np.int64)
    found: Arrays = {}
    if case.garbage == "padded":
        zoo = np.array([case.t, 0, 2**32 - 1, 2**31])  # as if the next had the rest of the tokens
        offsets = np.concatenate([offsets, np.resize(zoo, count - real)])
        lengths = np.concatenate([lengths, np.resize(zoo[1:], count - real)])
        found["batch"] = np.array([real], np.uint32)
    elif case.garbage:
        lengths[1 % count] = 2**32 - 1 if case.seed % 2 else room - 1
        table[0] = 2**32 - 1
    return found | {
        "row_offsets": offsets.astype(np.uint32),
        "lengths": lengths.astype(np.uint32),
        "table": table.astype(np.uint32) if lookup.has_table else np.zeros(0, np.uint32),
    }


# --- the list ---

_KINDS = (
    *(("bf16_576", 0), ("bf16_512", 0), ("fp8_576", 0), ("fp8_576", 1), ("fp8_576", 5)),
    *(("fp8_512", 0), ("fp8_512", 8), ("fp8_640", 1), ("fp8_656", 0)),
)
"""Formats, and scales of a row in an array."""
_PLACES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("paged_garbage", {"garbage": "any", "t": 9}),
    ("slots_garbage", {"where": "slots", "garbage": "any", "layers": 3, "t": 9}),
    ("wide_slots_garbage", {"where": "wide_slots", "garbage": "any", "page": 3, "t": 9}),
    ("continuous", {"where": "continuous", "page": 40}),
    ("padded", {"sequences": 60, "blocks": 120, "page": 2, "t": 50, "garbage": "padded"}),
)
_TELLING = (
    *(
        Case(name=f"telling_at_{name}", h=2, absorbs=False, values="edges", **place)
        for name, place in _PLACES
    ),
    Case(name="telling_rotation", t=7, h=21, absorbs=False, row=None, where="slots", gap=8),
    *(
        Case(
            name=f"telling_row_{row}_{scales}",
            h=0,
            absorbs=False,
            rotates=False,
            row=FORMATS[row],
            scales_per_row=scales,
            power_of_two=number % 2 == 0,
            values="edges",
            t=10,
        )
        for number, (row, scales) in enumerate(_KINDS)
    ),
    Case(name="telling_all", t=9, values="edges", gap=8, gamma=DType.FP32),
    Case(name="telling_products", t=2, h=2, rotates=False, row=None, gap=16),
    Case(name="telling_no_rope", t=3, row=FORMATS["bf16_512"], values="edges"),
    Case(name="telling_tokens_35", t=35),  # a second tile, of three tokens
)
_SMALL = (
    *(Case(name=f"heads_{h}", h=h) for h in (4, 5)),
    *(Case(name=f"tokens_{t}", t=t, values="edges") for t in (1, 8, 31, 32, 33, 65)),
    *(Case(name=f"at_{name}", h=2, **place) for name, place in _PLACES),
)
_LARGE = tuple(
    Case(
        name=f"decode_{t}_{h}_{row}",
        t=t,
        h=h,
        row=FORMATS[row],
        scales_per_row=int(FORMATS[row].array_scales == "always"),
        page=64,
        blocks=max(3, t),
        where="slots",
        values="edges" if t > 4 else "normal",
    )
    for h, row in ((8, "fp8_656"), (16, "bf16_576"), (128, "fp8_656"), (128, "fp8_640"))
    for t in (1, 4, 64, 300)
)


def cases() -> tuple[Case, ...]:
    """Every case to verify."""
    return _numbered((*_TELLING, *_SMALL, *_LARGE))


def small() -> tuple[Case, ...]:
    """The cases of few bytes that still cover every rule."""
    return _numbered((*_TELLING, *_SMALL))


def telling() -> tuple[Case, ...]:
    """Cases of several rules at once, and one of each kind of rows."""
    return _numbered(_TELLING)


def _numbered(listed: tuple[Case, ...]) -> tuple[Case, ...]:
    return tuple(replace(case, seed=seed) for seed, case in enumerate(listed))


def case_of(sizes: Mapping[str, str]) -> Case:
    """A case from typed sizes: `t h row scales_per_row power_of_two page blocks values seed`.

    Raises:
        ProblemError: an unknown name, a value that is not right, or a rule that is broken.

    """
    typed = Typed(sizes, DEFAULTS, KERNEL)
    for name, known in (("row", tuple(FORMATS)), ("values", tuple(VALUES))):
        word = typed.texts[name]
        if word not in known:
            raise ProblemError(f"unknown {name} `{word}`", where=KERNEL, hint=", ".join(known))
    row, scales = FORMATS[typed.texts["row"]], typed.number("scales_per_row", least=0)
    scales = scales or int(row.array_scales == "always")
    if scales and not row.block_of(scales):
        rule = f"`scales_per_row` must be what {row.name} rows may have, not {scales}"
        raise ProblemError(rule, where=KERNEL)
    case = Case(
        name=typed.name,
        t=typed.number("t"),
        h=typed.number("h"),
        row=row,
        scales_per_row=scales,
        power_of_two=bool(typed.number("power_of_two", least=0)),
        where="slots",
        page=typed.number("page"),
        blocks=typed.number("blocks"),
        values=typed.texts["values"],
        seed=typed.number("seed", least=0),
    )
    case.problem.check()
    if case.t > case.page * case.blocks:
        rule = f"`t` must be at most page * blocks = {case.page * case.blocks}, not {case.t}"
        raise ProblemError(rule, where=KERNEL)
    return case
