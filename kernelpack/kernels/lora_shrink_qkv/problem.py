"""Problems of LoRA shrink: sizes, the rules they obey, and inputs made from a seed.

    a [rows >= m, k] · b [g, 3n, k]ᵀ → c [3, m, n]

Token rows of one adapter are adjacent and form a *group*; group i owns rows
`a_offsets[i] … a_offsets[i+1]` and uses adapter `expert_ids[i]`, or none where that is -1.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import accumulate

import numpy as np

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.definition import Arrays
from kernelpack.kernels.typed import Typed, evenly

KERNEL = "lora_shrink_qkv"
ABIS = range(2, 3)
"""The kernel-ABI numbers this version can call."""

PLANES = 3
IN_DTYPES = (DType.BF16, DType.FP16)
OUT_DTYPES = (DType.BF16, DType.FP16, DType.FP32)
VECTOR = 8  # columns of one 16-byte store: one never straddles two planes
K_MULTIPLE = 8  # elements; TMA strides are multiples of 16 bytes
MAX_N = 5760
EMULATED = {"m": "40", "n": "16", "k": "1024", "g": "4"}
"""Sizes that an emulator runs in a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The sizes of one call, by the names of the manifest, which says what each is."""

    m: int
    n: int
    k: int
    g: int
    n_active: int
    choose_for: int = 0
    a_dtype: int = DType.BF16
    out_dtype: int = DType.BF16

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compute, so that nothing is launched."""
        return self.m == 0 or self.n_active == 0

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
        rules = [
            ("k", self.k, self.k > 0 and self.k % K_MULTIPLE == 0, f"a multiple of {K_MULTIPLE}"),
            ("n", self.n, self.n > 0 and self.n % VECTOR == 0, f"a multiple of {VECTOR}"),
            ("n", self.n, self.n <= MAX_N, f"at most {MAX_N}"),
            ("m", self.m, 0 <= self.m < 2**31, "from 0 to below 2^31"),
            ("g", self.g, self.g > 0 or self.is_empty, "at least 1 adapter"),
            ("choose_for", self.choose_for, 0 <= self.choose_for < 2**31, "from 0 to below 2^31"),
        ]
        for name, value, holds, rule in rules:
            if not holds:
                raise ProblemError(f"`{name}` must be {rule}, not {value}", where=KERNEL)
        self._check_dtypes()

    def _check_dtypes(self) -> None:
        for name, dtype, known in (
            ("a", self.a_dtype, IN_DTYPES),
            ("c", self.out_dtype, OUT_DTYPES),
        ):
            if dtype not in known:
                labels = ", ".join(kind.label for kind in known)
                found = DType(dtype).label
                raise ProblemError(f"`{name}` must be {labels}, not {found}", where=KERNEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A problem with its groups: everything that inputs are made from."""

    name: str
    g: int
    n: int
    k: int
    tokens: tuple[int, ...]
    ids: tuple[int, ...]
    dtype: DType = DType.BF16
    out_dtype: DType = DType.BF16
    rows_after: int = 0  # rows of `a` that no adapter covers; they hold NaN
    seed: int = 0

    @property
    def problem(self) -> Problem:
        """The sizes alone."""
        return Problem(
            m=sum(self.tokens),
            n=self.n,
            k=self.k,
            g=self.g,
            n_active=len(self.ids),
            a_dtype=int(self.dtype),
            out_dtype=int(self.out_dtype),
        )

    @property
    def sizes(self) -> dict[str, int]:
        """The problem as the manifest names it."""
        return asdict(self.problem)


def inputs(case: Case) -> Arrays:
    """Arrays of a case; products sum to about 1 so that no output type overflows."""
    random = np.random.default_rng(case.seed)
    kind = case.dtype.numpy
    m = sum(case.tokens)
    a = random.standard_normal((m + case.rows_after, case.k), dtype=np.float32).astype(kind)
    a[m:] = np.nan
    scale = np.float32(case.k**-0.5)
    b = random.standard_normal((case.g, PLANES * case.n, case.k), dtype=np.float32)
    return {
        "a": a,
        "b": (b * scale).astype(kind),
        **steering(case),
    }


def steering(case: Case) -> Arrays:
    """The groups of a case."""
    return {
        "a_offsets": np.array([0, *accumulate(case.tokens)], np.uint32),
        "expert_ids": np.array(case.ids, np.int32),
    }


def case_of(sizes: Mapping[str, str]) -> Case:
    """A case from typed sizes: `m n k g n_active dtype out_dtype seed`; groups as even as can be.

    Raises:
        ProblemError: an unknown name or a value that is not a number.

    """
    dtype = sizes.get("dtype", "bf16")
    defaults = {"m": "64", "n": "16", "k": "4096", "g": "4", "dtype": dtype, "seed": "0"}
    defaults |= {"n_active": sizes.get("g", "4"), "out_dtype": dtype}
    typed = Typed(sizes, defaults, KERNEL)
    g, groups = typed.number("g"), typed.number("n_active")
    case = Case(
        name=typed.name,
        g=g,
        n=typed.number("n"),
        k=typed.number("k"),
        tokens=evenly(typed.number("m"), groups),
        ids=tuple(i % g for i in range(groups)),
        dtype=DType.parse(dtype, where="dtype"),
        out_dtype=DType.parse(typed.texts["out_dtype"], where="out_dtype"),
        seed=typed.number("seed", least=0),
    )
    case.problem.check()
    return case
