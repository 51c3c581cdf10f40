"""Problems of the index remap: the numbers of one call, the rules they obey, and a case's inputs.

    indices [t, indices_stride], places of tokens in their sequence → out [t, k], encoded indices

`kernels/kv_operand/lookup` says which is which, and what is -1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kernelpack.errors import ProblemError
from kernelpack.kernels.definition import Arrays
from kernelpack.kernels.kv_operand.lookup import Lookup
from kernelpack.kernels.typed import Typed

KERNEL = "kv_remap_indices"
ABIS = range(1, 2)
"""The kernel-ABI numbers this version can call."""

DEFAULTS = {"t": "4096", "k": "2048", "page": "64", "sequences": "16", "pages": "64", "seed": "0"}
"""Sizes where a person types none."""
EMULATED = {"t": "5", "k": "37", "page": "16", "sequences": "3", "pages": "4"}
"""Sizes that an emulator runs in a second."""

ZOO = (-1, -7, -(2**31), 2**31 - 1, 114514)
"""Places that an indexer was seen to pass, beside those just past a sequence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The numbers of one call.

    Attributes:
        t: query tokens.
        k: entries of a token.
        indices_stride: entries of a token in memory; those from k on are never read.
        lookup: where tokens are.
        has_token_sequences: whether tokens say which sequence is theirs.

    """

    t: int
    k: int
    indices_stride: int
    lookup: Lookup
    has_token_sequences: bool = True

    @property
    def sizes(self) -> dict[str, int]:
        """The names a manifest's expressions use."""
        return {
            "t": self.t,
            "k": self.k,
            "indices_stride": self.indices_stride,
            **self.lookup.sizes,
            "has_offsets": int(self.lookup.has_offsets),
            "has_token_sequences": int(self.has_token_sequences),
        }

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compute, so that nothing is launched."""
        return self.t == 0 or self.k == 0

    def check(self) -> None:
        """Check the numbers against the kernel's definition.

        Raises:
            ProblemError: names the number, its value and the rule.

        """
        rules = [
            ("t", self.t, 0 <= self.t < 2**31, "from 0 to below 2^31"),
            ("k", self.k, 0 <= self.k < 2**31, "from 0 to below 2^31"),
            (
                "indices_stride",
                self.indices_stride,
                self.k <= self.indices_stride < 2**31,
                f"from k = {self.k} to below 2^31",
            ),
        ]
        for name, value, holds, rule in rules:
            if not holds:
                raise ProblemError(f"`{name}` must be {rule}, not {value}", where=KERNEL)
        self.lookup.check(KERNEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One problem to verify, with what its inputs hold.

    Attributes:
        name: what people call it.
        t, k: as of Problem.
        storage: `paged`, `continuous`, `slots` (continuous without a table), or `ragged`.
        sequences, pages, page, blocks: as of the storage.
        spare: entries of a token after k, and of a sequence in the table.
        by_token: whether tokens say which sequence is theirs; otherwise there are as many.
        garbage: whether sequences, table and offsets hold numbers that name nothing.
        seed: of what is random.

    """

    name: str
    t: int = 5
    k: int = 24
    storage: str = "paged"
    sequences: int = 3
    pages: int = 4
    page: int = 16
    blocks: int = 20
    spare: int = 0
    by_token: bool = True
    garbage: bool = False
    seed: int = 0

    @property
    def problem(self) -> Problem:
        """The numbers alone."""
        paged = self.storage == "paged"
        lookup = Lookup(
            sequences=self.sequences,
            pages=self.pages if paged else 1,
            page=self.page * self.blocks if self.storage == "ragged" else self.page,
            blocks=1 if self.storage == "ragged" else self.blocks,
            table_stride=(self.pages if paged else 1) + self.spare,
            has_table=self.storage in ("paged", "continuous"),
            has_offsets=self.storage == "ragged",
        )
        stride = self.k + self.spare
        return Problem(
            t=self.t,
            k=self.k,
            indices_stride=stride,
            lookup=lookup,
            has_token_sequences=self.by_token,
        )

    @property
    def sizes(self) -> dict[str, int]:
        """The problem as the manifest names it."""
        return self.problem.sizes


@dataclass(slots=True)
class _Maker:
    """Makes a case's arrays, one after another from one stream of random numbers."""

    case: Case
    random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.case.seed)

    def table(self) -> NDArray[np.uint32]:
        lookup = self.case.problem.lookup
        if not lookup.has_table:
            return np.zeros(0, np.uint32)
        size = (lookup.sequences - 1) * lookup.table_stride + lookup.pages
        made = self.random.integers(0, lookup.blocks, size)
        if self.case.garbage:
            bad = self.random.random(size) < 0.3
            made[bad] = self.random.choice([lookup.blocks, 2**32 - 1, 2**31], bad.sum())
        return made.astype(np.uint32)

    def offsets(self) -> NDArray[np.uint32]:
        lookup = self.case.problem.lookup
        if not lookup.has_offsets:
            return np.zeros(0, np.uint32)
        rows = lookup.page
        cuts = np.sort(self.random.integers(0, rows + 1, lookup.sequences - 1))
        made = np.array([0, *cuts, rows])
        if self.case.garbage:
            made[-1] = rows + 9
        return made.astype(np.uint32)

    def token_sequences(self) -> NDArray[np.uint32]:
        case = self.case
        made = self.random.integers(0, case.sequences, case.t if case.by_token else 0)
        if case.garbage:
            made[1::3] = self.random.choice([case.sequences, 2**32 - 1, 10**6], made[1::3].size)
        return made.astype(np.uint32)

    def indices(self) -> NDArray[np.int32]:
        case, lookup = self.case, self.case.problem.lookup
        longest = lookup.pages * lookup.page
        size = (case.t - 1) * (case.k + case.spare) + case.k
        made = self.random.integers(0, longest, size)
        bad = self.random.random(size) < 0.25
        made[bad] = self.random.choice([*ZOO, longest, longest - 1, 0], bad.sum())
        return made.astype(np.int32)


def inputs(case: Case) -> Arrays:
    """Arrays of a case; those it does not have are empty."""
    make = _Maker(case)
    return {
        "indices": make.indices(),
        "token_sequences": make.token_sequences(),
        "table": make.table(),
        "offsets": make.offsets(),
    }


def case_of(sizes: Mapping[str, str]) -> Case:
    """A case from typed sizes: `t k page sequences pages seed`, of a paged storage.

    Raises:
        ProblemError: an unknown name, a value that is not right, or a rule that is broken.

    """
    typed = Typed(sizes, DEFAULTS, KERNEL)
    sequences, pages = typed.number("sequences"), typed.number("pages")
    case = Case(
        name=typed.name,
        t=typed.number("t"),
        k=typed.number("k"),
        sequences=sequences,
        pages=pages,
        page=typed.number("page"),
        blocks=sequences * pages,
        seed=typed.number("seed", least=0),
    )
    case.problem.check()
    return case
