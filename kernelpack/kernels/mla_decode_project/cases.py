"""The cases that the projection is verified on: tokens, heads, gaps and values."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

from kernelpack.errors import ProblemError
from kernelpack.kernels.block_scaled.inputs import VALUES, laid_out, weights
from kernelpack.kernels.definition import Arrays
from kernelpack.kernels.kv_operand.rows import LATENT
from kernelpack.kernels.mla_decode_project.problem import KERNEL, Problem
from kernelpack.kernels.mla_decode_project.problem import VALUES as COLUMNS
from kernelpack.kernels.typed import Typed

DEFAULTS = {"t": "16", "h": "128", "values": "normal", "seed": "0"}
"""Sizes where a person types none: a decode step of DeepSeek-V3."""
EMULATED = {"t": "3", "h": "2"}
"""Sizes that an emulator runs in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One problem to verify, with what its inputs hold.

    Attributes:
        name: what people call it.
        t, h: tokens, and heads of each.
        token_gap, head_gap: NaN between tokens' values and between heads', elements.
        values: what x holds, a key of `VALUES`.
        seed: of what is random.

    """

    name: str
    t: int = 3
    h: int = 2
    token_gap: int = 0
    head_gap: int = 0
    values: str = "normal"
    seed: int = 0

    @property
    def problem(self) -> Problem:
        """The numbers alone."""
        head = LATENT + self.head_gap
        return Problem(
            t=self.t, h=self.h, x_head_stride=head, x_token_stride=self.h * head + self.token_gap
        )

    @property
    def sizes(self) -> dict[str, int]:
        """The problem as the manifest names it."""
        return asdict(self.problem)


def inputs(case: Case) -> Arrays:
    """Arrays of a case."""
    random = np.random.default_rng(case.seed)
    x = VALUES[case.values](random, (case.t, case.h, LATENT))
    return {
        "x": laid_out(x, (case.token_gap, case.head_gap)),
        **weights(random, "w_uv", (case.h, COLUMNS, LATENT)),
    }


_TELLING = (
    Case(name="telling_gaps", t=5, h=1, token_gap=24, head_gap=8, values="edges"),
    Case(name="telling_heads_2", t=1, token_gap=8, head_gap=16),
    Case(name="telling_tokens_33", t=33, h=1),  # tiles of a small device: a CTA has several
)
_SMALL = (
    *(Case(name=f"heads_{h}", h=h) for h in (3, 8)),
    *(Case(name=f"tokens_{t}", t=t, h=1, values="edges") for t in (1, 7, 8, 9, 16, 17, 40)),
)
_LARGE = tuple(
    Case(name=f"decode_{t}_{h}", t=t, h=h, values="edges" if t % 3 else "normal")
    for h in (8, 16, 128)
    for t in (1, 4, 64, 300)
)


def cases() -> tuple[Case, ...]:
    """Every case to verify."""
    return _numbered((*_TELLING, *_SMALL, *_LARGE))


def small() -> tuple[Case, ...]:
    """The cases of few bytes that still cover every rule."""
    return _numbered((*_TELLING, *_SMALL))


def telling() -> tuple[Case, ...]:
    """Cases of several rules at once."""
    return _numbered(_TELLING)


def _numbered(listed: tuple[Case, ...]) -> tuple[Case, ...]:
    return tuple(replace(case, seed=seed) for seed, case in enumerate(listed))


def case_of(sizes: Mapping[str, str]) -> Case:
    """A case from typed sizes: `t h values seed`.

    Raises:
        ProblemError: an unknown name, a value that is not right, or a rule that is broken.

    """
    typed = Typed(sizes, DEFAULTS, KERNEL)
    values = typed.texts["values"]
    if values not in VALUES:
        raise ProblemError(f"unknown values `{values}`", where=KERNEL, hint=", ".join(VALUES))
    case = Case(
        name=typed.name,
        t=typed.number("t"),
        h=typed.number("h"),
        values=values,
        seed=typed.number("seed", least=0),
    )
    case.problem.check()
    return case
