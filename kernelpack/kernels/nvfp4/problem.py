"""Sizes of a grouped GEMM with NVFP4 weights, and the rules they obey.

    a [t, k] · b [e, n, k]ᵀ → c [t, n]

Token rows of one expert are adjacent and form a *group*; group g owns rows
`group_offsets[g] … group_offsets[g+1]` and uses expert `expert_ids[g]`, or none where that is -1:
such rows of c are not written. Most groups of a serving step are empty.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import TypeVar

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.typed import Typed, evenly

OUT_DTYPES = (DType.BF16, DType.FP16, DType.FP32)
BLOCK = 16  # elements along K that share a scale
LARGEST_SCALE_BYTE = 0x7F  # ue4m3 has seven bits; what bit 7 of its byte does is not defined
K_MULTIPLE = 32  # elements; a packed row is a multiple of TMA's 16 bytes
N_MULTIPLE = 8  # columns of one 16-byte store
DEFAULTS = {"t": "64", "n": "4096", "k": "7168", "e": "8", "n_active": "", "out_dtype": "bf16"}
"""Sizes where a person types none; as many groups as experts."""
EMULATED = {"t": "24", "n": "72", "k": "96", "e": "4"}
"""Sizes that an emulator runs in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The sizes of one call, by the names of the manifest, which says what each is.

    Attributes:
        scale_blocks: None where tokens have no scales.

    """

    t: int
    n: int
    k: int
    e: int
    n_active: int
    choose_for: int = 0
    out_dtype: int = DType.BF16
    scale_blocks: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compute, so that nothing is launched."""
        return self.t == 0 or self.n_active == 0

    @classmethod
    def of(cls, sizes: Mapping[str, int], kernel: str) -> "Problem":
        """The problem of sizes, whose rules hold; errors as of `check`."""
        problem = cls(**sizes)
        problem.check(kernel)
        return problem

    def check(self, kernel: str) -> None:
        """Check the sizes against the definition of `kernel`.

        Raises:
            ProblemError: names the size, its value and the rule.

        """
        rules = [
            ("k", self.k, self.k > 0 and self.k % K_MULTIPLE == 0, f"a multiple of {K_MULTIPLE}"),
            ("n", self.n, self.n > 0 and self.n % N_MULTIPLE == 0, f"a multiple of {N_MULTIPLE}"),
            ("t", self.t, 0 <= self.t < 2**31, "from 0 to below 2^31"),
            ("e", self.e, self.e > 0 or self.is_empty, "at least 1 expert"),
            ("choose_for", self.choose_for, 0 <= self.choose_for < 2**31, "from 0 to below 2^31"),
        ]
        for name, value, holds, rule in rules:
            if not holds:
                raise ProblemError(f"`{name}` must be {rule}, not {value}", where=kernel)
        if self.out_dtype not in OUT_DTYPES:
            labels = ", ".join(kind.label for kind in OUT_DTYPES)
            rule = f"`c` must be {labels}, not {DType(self.out_dtype).label}"
            raise ProblemError(rule, where=kernel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A problem with its groups: everything that inputs are made from."""

    name: str
    e: int
    n: int
    k: int
    tokens: tuple[int, ...]
    ids: tuple[int, ...]
    out_dtype: DType = DType.BF16
    is_largest: bool = False  # every code and scale is the largest there is
    seed: int = 0

    @property
    def problem(self) -> Problem:
        """The sizes alone."""
        return Problem(
            t=sum(self.tokens),
            n=self.n,
            k=self.k,
            e=self.e,
            n_active=len(self.ids),
            out_dtype=int(self.out_dtype),
            scale_blocks=self.scale_blocks,
        )

    @property
    def sizes(self) -> dict[str, int]:
        """The problem as the manifest names it."""
        return {n: size for n, size in asdict(self.problem).items() if size is not None}

    @property
    def scale_blocks(self) -> int | None:
        """Row blocks of a's scales; None where a has none."""
        return None

    @property
    def offsets(self) -> tuple[int, ...]:
        """The first row of each group, then the number of rows."""
        return (0, *accumulate(self.tokens))


C = TypeVar("C", bound=Case)


def case_of(make: Callable[..., C], kernel: str, sizes: Mapping[str, str]) -> C:
    """A case from typed sizes, those of DEFAULTS and `seed`; groups as even as can be.

    Raises:
        ProblemError: an unknown name, a value that is not a number, or a rule that is broken.

    """
    experts = sizes.get("e", DEFAULTS["e"])
    typed = Typed(sizes, {**DEFAULTS, "n_active": experts, "seed": "0"}, kernel)
    e, groups = typed.number("e"), typed.number("n_active")
    case = make(
        name=typed.name,
        e=e,
        n=typed.number("n"),
        k=typed.number("k"),
        tokens=evenly(typed.number("t"), groups),
        ids=tuple(i % e for i in range(groups)),
        out_dtype=DType.parse(typed.texts["out_dtype"], where="out_dtype"),
        seed=typed.number("seed", least=0),
    )
    case.problem.check(kernel)
    return case
