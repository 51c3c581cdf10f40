"""The cases that the cache append is verified on: where tokens go, formats, scales and values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.definition import Arrays
from kernelpack.kernels.kv_cache_append.problem import KERNEL, Problem
from kernelpack.kernels.kv_operand.lookup import Lookup
from kernelpack.kernels.kv_operand.rows import FORMATS, LATENT, ROPE, RowFormat
from kernelpack.kernels.typed import Typed

Random = np.random.Generator

DEFAULTS = {
    "t": "4096",
    "row": "bf16_576",
    "scales_per_row": "0",
    "power_of_two": "0",
    "page": "64",
    "blocks": "1024",
    "values": "normal",
    "seed": "0",
}
"""Sizes where a person types none."""
EMULATED = {"t": "20", "page": "16", "blocks": "4"}
"""Sizes that an emulator runs in a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One problem to verify, with what its inputs hold.

    Attributes:
        name: what people call it.
        row: the format of rows.
        scales_per_row, power_of_two: as of Problem.
        t: tokens; where sequences say where they go, those of the last row offset may be fewer.
        where: `slots`, `wide_slots`, or by sequence: `paged`, `continuous`, `own_slots`.
        page, blocks, layers: of the cache; blocks of one layer lie that many blocks apart.
        gap: poison between tokens' values, elements.
        garbage: whether slots, lengths, offsets and table hold numbers that name nothing.
        values: what tokens hold, a key of `VALUES`.
        seed: of what is random.

    """

    name: str
    row: RowFormat = FORMATS["bf16_576"]
    scales_per_row: int = 0
    power_of_two: bool = False
    t: int = 11
    where: str = "slots"
    page: int = 16
    blocks: int = 6
    layers: int = 1
    gap: int = 0
    garbage: bool = False
    values: str = "normal"
    seed: int = 0

    @property
    def kind(self) -> str:
        """The name without the format, where it begins with it."""
        return self.name.removeprefix(f"{self.row.name}_{self.scales_per_row}_")

    @property
    def problem(self) -> Problem:
        """The numbers alone."""
        by_sequence = self.where in _BY_SEQUENCE
        pages = self.blocks // _SEQUENCES if self.where == "paged" else 1
        return Problem(
            t=self.t,
            row=self.row,
            latent_stride=LATENT + self.gap,
            rope_stride=ROPE + self.gap if self.row.rope else 0,
            slot_words={"slots": 1, "wide_slots": 2}.get(self.where, 0),
            lookup=Lookup(
                sequences=_SEQUENCES if by_sequence else 0,
                pages=pages,
                page=self.page,
                blocks=self.blocks,
                table_stride=pages,
                has_table=self.where in ("paged", "continuous"),
            ),
            block_stride=self.page * self.layers,
            scales_per_row=self.scales_per_row,
            power_of_two=self.power_of_two,
        )

    @property
    def sizes(self) -> dict[str, int]:
        """The problem as the manifest names it."""
        return self.problem.sizes


_SEQUENCES = 3
_BY_SEQUENCE = ("paged", "continuous", "own_slots")

# --- values: [t, width], fp32 that bf16 holds ---


def _normal(random: Random, shape: tuple[int, int]) -> NDArray[np.float32]:
    return random.standard_normal(shape, np.float32)


def _edges(random: Random, shape: tuple[int, int]) -> NDArray[np.float32]:
    """Zeros, tiny and huge numbers, an infinity, a NaN, -0; largest ones of 336 and 448."""
    made = random.standard_normal(shape, np.float32)
    made[0] = 0
    made[1 % shape[0]] *= np.float32(2.0**-60)
    made[2 % shape[0]] *= np.float32(2.0**100)
    made[3 % shape[0], 5::97] = np.inf
    made[4 % shape[0], 17] = np.nan
    made[5 % shape[0], ::8] = -0.0
    made[6 % shape[0]] = np.clip(made[6 % shape[0]] * 100, -336, 336)
    made[6 % shape[0], ::32] = 336
    made[7 % shape[0]] = np.clip(made[7 % shape[0]] * 100, -200, 200)
    made[7 % shape[0], LATENT::16] = made[8 % shape[0], ::32] = 448
    return made


def _bits(random: Random, shape: tuple[int, int]) -> NDArray[np.float32]:
    """Any bf16 that is finite, of rows each of similar size."""
    raw = random.integers(0, 2**16, shape, np.uint16).view(DType.BF16.numpy).astype(np.float32)
    return np.where(np.isfinite(raw), raw, 0).astype(np.float32)


VALUES = {"normal": _normal, "edges": _edges, "bits": _bits}


def inputs(case: Case) -> Arrays:
    """Arrays of a case; those it does not have are empty."""
    random, problem = np.random.default_rng(case.seed), case.problem
    values = VALUES[case.values](random, (case.t, LATENT + ROPE)).astype(DType.BF16.numpy)
    rope = values[:, LATENT:] if problem.row.rope else values[:0, LATENT:]
    return {
        "latent": _laid_out(values[:, :LATENT], problem.latent_stride),
        "rope": _laid_out(rope, problem.rope_stride),
        **_where(case, random),
    }


def _laid_out(values: NDArray[Any], stride: int) -> NDArray[Any]:
    """Values in memory of their stride, NaN between tokens."""
    if not values.size:
        return np.zeros(0, values.dtype)
    flat = np.full((len(values) - 1) * stride + values.shape[1], np.nan, values.dtype)
    steps = (stride * values.itemsize, values.itemsize)
    np.lib.stride_tricks.as_strided(flat, values.shape, steps)[...] = values
    return flat


def _where(case: Case, random: Random) -> Arrays:
    """Where tokens go: each to a row of its own."""
    none, lookup = np.zeros(0, np.uint32), case.problem.lookup
    if case.where not in _BY_SEQUENCE:
        slots = random.permutation(case.page * case.blocks)[: case.t].astype(np.int64)
        if case.garbage:
            zoo = [-1, -(2**31), case.page * case.blocks, 2**31 - 1, -12345]
            wide = [2**32, 2**40 + 1, -(2**40)] if case.where == "wide_slots" else []
            slots[::3] = random.choice([*zoo, *wide], slots[::3].size)
        kind = np.int64 if case.where == "wide_slots" else np.int32
        words = slots.astype(kind).view(np.uint32)
        return {"slots": words, "row_offsets": none, "lengths": none, "table": none}
    room = lookup.pages * lookup.page
    cuts = np.sort(random.integers(0, case.t + 1, _SEQUENCES - 1))
    if case.garbage:
        cuts = np.array([case.t // 3, 2 * case.t // 3])
    offsets = np.array([0, *cuts, case.t])
    new = np.diff(offsets)
    lengths = np.array([random.integers(0, max(1, room - n + 1)) for n in new], np.int64)
    table = random.permutation(case.blocks)[: _SEQUENCES * lookup.pages].astype(np.int64)
    if case.garbage:
        offsets[-1] -= min(2, new[-1])  # the last tokens are of nobody
        lengths[1] = room - 1  # its second token is past the table
        table[0] = 2**32 - 1
    return {
        "slots": none,
        "row_offsets": offsets.astype(np.uint32),
        "lengths": lengths.astype(np.uint32),
        "table": table.astype(np.uint32) if lookup.has_table else none,
    }


# --- the list ---

_KINDS = (
    *(("bf16_576", 0), ("bf16_512", 0)),
    *(("fp8_576", 0), ("fp8_576", 1), ("fp8_576", 5), ("fp8_576", 9), ("fp8_576", 18)),
    *(("fp8_512", 0), ("fp8_512", 1), ("fp8_512", 4), ("fp8_512", 8), ("fp8_512", 16)),
    *(("fp8_640", 1), ("fp8_656", 0)),
)
"""Formats, and scales of a row in an array."""
_PLACES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("slots_garbage", {"garbage": True, "layers": 3}),
    ("wide_slots_garbage", {"where": "wide_slots", "garbage": True, "page": 3, "blocks": 20}),
    ("paged", {"where": "paged", "layers": 2}),
    ("paged_garbage", {"where": "paged", "garbage": True}),
    ("continuous", {"where": "continuous", "page": 40}),
    ("continuous_garbage", {"where": "continuous", "garbage": True, "page": 40}),
    ("own_slots", {"where": "own_slots", "page": 40}),
    ("page_1", {"page": 1, "blocks": 90}),
    ("gaps", {"gap": 64}),
    ("one_token", {"t": 1}),
)


def cases() -> tuple[Case, ...]:
    """Every case to verify."""
    return _numbered((*_small(), *_large()))


def small() -> tuple[Case, ...]:
    """The cases of few bytes that still cover every rule."""
    return _numbered(tuple(_small()))


def telling() -> tuple[Case, ...]:
    """One case of each kind of rows, of several rules at once."""
    return _numbered(tuple(_telling()))


def _numbered(listed: tuple[Case, ...]) -> tuple[Case, ...]:
    return tuple(replace(case, seed=seed) for seed, case in enumerate(listed))


def _telling() -> Iterator[Case]:
    for number, (row, scales) in enumerate(_KINDS):
        place = _PLACES[number % 6][1]
        yield Case(
            name=f"{row}_{scales}_telling",
            row=FORMATS[row],
            scales_per_row=scales,
            power_of_two=number % 2 == 0,
            values="edges",
            gap=8,
            **place,
        )
    for row in FORMATS:  # more tokens than a small device has warps
        scales = int(FORMATS[row].array_scales == "always")
        yield Case(
            name=f"{row}_{scales}_telling_many",
            row=FORMATS[row],
            scales_per_row=scales,
            t=300,
            blocks=20,
        )


def _small() -> Iterator[Case]:
    yield from _telling()
    for row, scales in _KINDS:
        whole = Case(name="", row=FORMATS[row], scales_per_row=scales)
        for values in VALUES:
            for power in (False, True):
                name = f"{row}_{scales}_{values}{'_power' if power else ''}"
                yield replace(whole, name=name, values=values, power_of_two=power)
    for name, place in _PLACES:
        for row, scales in (("bf16_576", 0), ("fp8_656", 0), ("fp8_640", 1)):
            whole = Case(name=f"{row}_{scales}_{name}", row=FORMATS[row], scales_per_row=scales)
            yield replace(whole, **place)


def _large() -> Iterator[Case]:
    for row, scales in _KINDS:
        whole = Case(name="", row=FORMATS[row], scales_per_row=scales, page=64, layers=2)
        yield replace(whole, name=f"{row}_{scales}_many", t=3000, blocks=100, values="bits")
        yield replace(whole, name=f"{row}_{scales}_decode", t=130, blocks=99, where="paged")


def case_of(sizes: Mapping[str, str]) -> Case:
    """A case from typed sizes: `t row scales_per_row power_of_two page blocks values seed`.

    Raises:
        ProblemError: an unknown name, a value that is not right, or a rule that is broken.

    """
    typed = Typed(sizes, DEFAULTS, KERNEL)
    for name, known in (("row", tuple(FORMATS)), ("values", tuple(VALUES))):
        word = typed.texts[name]
        if word not in known:
            raise ProblemError(f"unknown {name} `{word}`", where=KERNEL, hint=", ".join(known))
    row, scales = FORMATS[typed.texts["row"]], typed.number("scales_per_row", least=0)
    if row.array_scales == "always":
        scales = scales or 1
    if scales and not row.block_of(scales):
        rule = f"`scales_per_row` must be what {row.name} rows may have, not {scales}"
        raise ProblemError(rule, where=KERNEL)
    case = Case(
        name=typed.name,
        row=row,
        scales_per_row=scales,
        power_of_two=bool(typed.number("power_of_two", least=0)),
        t=typed.number("t"),
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
