"""Problems of the combine: the numbers of one call, the rules they obey, and a case's inputs.

    partial_out [splits, t, h, 512], partial_lse [splits, t, h] → out [t, h, 512], lse [t, h]

A split whose partial_lse, in units of log2, is -inf has no keys; its partial outputs may be
anything.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from kernelpack.errors import ProblemError
from kernelpack.kernels.definition import Arrays
from kernelpack.kernels.kv_operand.rows import LATENT
from kernelpack.kernels.mla_decode_attention.problem import MOST_PARTITIONS
from kernelpack.kernels.sparse_mla_prefill.inputs import SINKS
from kernelpack.kernels.sparse_mla_prefill.problem import MOST_HEADS, Rule, bits
from kernelpack.kernels.typed import Typed

KERNEL = "mla_decode_combine"
ABIS = range(1, 2)
"""The kernel-ABI numbers this version can call."""

DEFAULTS = {"t": "16", "h": "128", "partitions": "8", "seed": "0"}
"""Sizes where a person types none."""
EMULATED = {"t": "1", "h": "16", "partitions": "5"}
"""Sizes that an emulator runs in a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The numbers of one call.

    Attributes:
        t: query tokens.
        h: heads of a token.
        partitions: splits of a token's keys.
        lse: whether lse is written.
        sink: whether sink is given.
        dead_lse: lse of a row without keys: infinity, or minus infinity.

    """

    t: int
    h: int
    partitions: int
    lse: bool = True
    sink: bool = False
    dead_lse: float = float("inf")

    @property
    def sizes(self) -> dict[str, int]:
        """The names a manifest's expressions use; fp32 numbers by their bits."""
        return {
            "t": self.t,
            "h": self.h,
            "partitions": self.partitions,
            "has_lse": int(self.lse),
            "has_sink": int(self.sink),
            "dead_lse": bits(self.dead_lse),
        }

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compute, so that nothing is launched."""
        return self.t == 0

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> "Problem":
        """The problem of sizes that a manifest names, whose rules hold; errors as of `check`."""
        problem = cls(t=sizes["t"], h=sizes["h"], partitions=sizes["partitions"])
        problem.check()
        return problem

    def check(self) -> None:
        """Check the numbers against the kernel's definition.

        Raises:
            ProblemError: names the number, its value and the rule.

        """
        for name, value, holds, rule in self._rules():
            if not holds:
                raise ProblemError(f"`{name}` must be {rule}, not {value}", where=KERNEL)

    def _rules(self) -> Iterator[Rule]:
        splits = self.partitions
        yield "t", self.t, 0 <= self.t < 2**24, "from 0 to below 2^24"
        yield "h", self.h, 1 <= self.h <= MOST_HEADS, f"1 to {MOST_HEADS}"
        yield "partitions", splits, 1 <= splits <= MOST_PARTITIONS, f"1 to {MOST_PARTITIONS}"
        yield "dead_lse", self.dead_lse, abs(self.dead_lse) == float("inf"), "inf or -inf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One problem to verify, with what its inputs hold.

    Attributes:
        name: what people call it.
        problem: its numbers.
        empty: the share of splits without keys; of token 0 all are, where it is not 0.
        spread: how far lse lie apart, in units of log2.
        seed: of what is random.

    """

    name: str
    problem: Problem
    empty: float = 0.3
    spread: float = 4.0
    seed: int = 0

    @property
    def sizes(self) -> dict[str, int]:
        """The problem as the manifest names it."""
        return self.problem.sizes


def inputs(case: Case) -> Arrays:
    """Arrays of a case; partial outputs of a split without keys are NaN."""
    random, problem = np.random.default_rng(case.seed), case.problem
    sides = (problem.partitions, problem.t, problem.h)
    lse = (random.standard_normal(sides) * case.spread).astype(np.float32)
    is_empty = random.random(sides) < case.empty
    is_empty[:, 0] |= case.empty > 0
    lse[is_empty] = -np.inf
    out = random.standard_normal((*sides, LATENT)).astype(np.float32)
    out[is_empty] = np.nan
    sink = np.resize(np.array(SINKS, np.float32), problem.h if problem.sink else 0)
    return {"partial_out": out, "partial_lse": lse, "sink": sink}


def case_of(sizes: Mapping[str, str]) -> Case:
    """A case from sizes as they are typed, of the names in `DEFAULTS`.

    Raises:
        ProblemError: an unknown name, a value that is not right, or a rule that is broken.

    """
    typed = Typed(sizes, DEFAULTS, KERNEL)
    t, h, splits = (typed.number(name) for name in ("t", "h", "partitions"))
    problem = Problem(t=t, h=h, partitions=splits)
    problem.check()
    return Case(name=typed.name, problem=problem, seed=typed.number("seed", least=0))
