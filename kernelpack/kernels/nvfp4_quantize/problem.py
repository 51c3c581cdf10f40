"""Problems of the NVFP4 quantiser: sizes, the rules they obey, and inputs made from a seed.

    x [t, k] → codes [t, k / 2], scales [scale_blocks, ceil(k / 64), 32, 4, 4]

In the plain form all rows are one tensor with one scale. In the grouped form rows of one expert
are adjacent: group g owns rows `row_offsets[g] … row_offsets[g + 1]`, uses the tensor scale of
`expert_ids[g]`, or is skipped where that is -1, and its scales begin a fresh block of 128 rows
(`formats.grouped_scales`).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import accumulate

import numpy as np

from kernelpack.errors import ProblemError
from kernelpack.formats import grouped_scales
from kernelpack.formats.dtype import DType
from kernelpack.kernels.definition import Arrays
from kernelpack.kernels.nvfp4.problem import K_MULTIPLE
from kernelpack.kernels.nvfp4_quantize.values import VALUES
from kernelpack.kernels.typed import Typed, evenly

KERNEL = "nvfp4_quantize"
ABIS = range(1, 2)
"""The kernel-ABI numbers this version can call."""

IN_DTYPES = (DType.BF16, DType.FP16)
ATOM_ROWS, ATOM_COLUMNS = 128, 64  # of x, whose scales are 512 adjacent bytes
MAX_ATOMS = 2**29
DEFAULTS = {
    "t": "4096",
    "k": "7168",
    "n_active": "0",
    "dtype": "bf16",
    "values": "normal",
    "seed": "0",
}
"""Sizes where a person types none: those of the plain form."""
EMULATED = {"t": "150", "k": "96", "n_active": "4"}
"""Sizes that an emulator runs in a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The sizes of one call, by the names of the manifest, which says what each is."""

    t: int
    k: int
    e: int = 1
    n_active: int = 0
    scale_blocks: int
    x_dtype: int = DType.BF16
    grouped: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write, so that nothing is launched."""
        return self.scale_blocks == 0

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> "Problem":
        """The problem of sizes, whose rules hold; errors as of `check`."""
        problem = cls(**sizes)
        problem.check()
        return problem

    def check(self) -> None:
        """Check the sizes against the kernel's definition.

        Raises:
            ProblemError: names the size, its value and the rule.

        """
        atoms = self.scale_blocks * -(-self.k // ATOM_COLUMNS)
        least = 0 if self.grouped else -(-self.t // ATOM_ROWS)
        rules = [
            ("k", self.k, self.k > 0 and self.k % K_MULTIPLE == 0, f"a multiple of {K_MULTIPLE}"),
            ("t", self.t, 0 <= self.t < 2**31, "from 0 to below 2^31"),
            ("e", self.e, self.e > 0 or self.n_active == 0, "at least 1 expert"),
            ("scale_blocks", self.scale_blocks, self.scale_blocks >= least, f"at least {least}"),
            ("scale_blocks", self.scale_blocks, atoms < MAX_ATOMS, "below 2^29 / ceil(k / 64)"),
        ]
        for name, value, holds, rule in rules:
            if not holds:
                raise ProblemError(f"`{name}` must be {rule}, not {value}", where=KERNEL)
        if self.x_dtype not in IN_DTYPES:
            labels, found = ", ".join(kind.label for kind in IN_DTYPES), DType(self.x_dtype).label
            raise ProblemError(f"`x` must be {labels}, not {found}", where=KERNEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A problem with its groups and what x holds: everything that inputs are made from.

    Attributes:
        name: what people call it.
        k: elements of a row.
        tokens: rows of each group; of the plain form: of all.
        ids: expert of each group; None in the plain form.
        e: experts.
        spare_blocks: row blocks of the scale tensor that no group owns, at its end.
        values: what x holds, a key of `VALUES`.
        dtype: element type of x.
        seed: of what is random.

    """

    name: str
    k: int
    tokens: tuple[int, ...]
    ids: tuple[int, ...] | None = None
    e: int = 1
    spare_blocks: int = 0
    values: str = "normal"
    dtype: DType = DType.BF16
    seed: int = 0

    @property
    def offsets(self) -> tuple[int, ...]:
        """First row of each group, then the number of rows."""
        return (0, *accumulate(self.tokens))

    @property
    def problem(self) -> Problem:
        """The sizes alone."""
        return Problem(
            t=sum(self.tokens),
            k=self.k,
            e=self.e,
            n_active=len(self.ids or ()),
            scale_blocks=grouped_scales.scale_blocks(self.offsets) + self.spare_blocks,
            x_dtype=int(self.dtype),
            grouped=int(self.ids is not None),
        )

    @property
    def sizes(self) -> dict[str, int]:
        """The problem as the manifest names it."""
        return asdict(self.problem)


def inputs(case: Case) -> Arrays:
    """Arrays of a case; in the plain form the index arrays are empty."""
    random = np.random.default_rng(case.seed)
    x, tensor_scales = VALUES[case.values](random, (sum(case.tokens), case.k), case.e, case.dtype)
    return {"x": x, **steering(case), "tensor_scales": tensor_scales}


def steering(case: Case) -> Arrays:
    """The groups of a case; empty in the plain form."""
    offsets = np.array(case.offsets if case.ids is not None else (), np.uint32)
    return {
        "row_offsets": offsets,
        "scale_offsets": grouped_scales.group_scale_offsets(offsets if offsets.size else [0]),
        "expert_ids": np.array(case.ids or (), np.int32),
    }


def case_of(sizes: Mapping[str, str]) -> Case:
    """A case from typed sizes: `t k n_active dtype values seed`; groups as even as can be.

    Without groups (`n_active=0`) it is one of the plain form.

    Raises:
        ProblemError: an unknown name, a value that is not right, or a rule that is broken.

    """
    typed = Typed(sizes, DEFAULTS, KERNEL)
    groups, values = typed.number("n_active", least=0), typed.texts["values"]
    if values not in VALUES:
        hint = f"values: {', '.join(VALUES)}"
        raise ProblemError(f"unknown values `{values}`", where=KERNEL, hint=hint)
    case = Case(
        name=typed.name,
        k=typed.number("k"),
        tokens=evenly(typed.number("t"), max(1, groups)),
        ids=tuple(range(groups)) if groups else None,
        e=max(1, groups),
        values=values,
        dtype=DType.parse(typed.texts["dtype"], where="dtype"),
        seed=typed.number("seed", least=0),
    )
    case.problem.check()
    return case
