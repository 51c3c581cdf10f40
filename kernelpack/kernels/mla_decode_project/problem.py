"""Problems of the projection after decode attention: the numbers of one call, and their rules.

    x [t, h, 512], w_uv [h, 128, 512] with w_uv_scale [h, 4] → out [t, h, 128]

K is 512, in four groups that have scales of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kernelpack.errors import ProblemError
from kernelpack.kernels.kv_operand.rows import LATENT

KERNEL = "mla_decode_project"
ABIS = range(1, 2)
"""The kernel-ABI numbers this version can call."""

VALUES = 128
"""Columns of an output, of a head."""
MULTIPLE = 8  # elements: values are read 16 bytes at a time
MOST_TOKENS, MOST_HEADS = 2**22, 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The numbers of one call, by the names of the manifest, which says what each is."""

    t: int
    h: int
    x_token_stride: int
    x_head_stride: int = LATENT

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write, so that nothing is launched."""
        return self.t == 0

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> "Problem":
        """The problem of sizes, whose rules hold; errors as of `check`."""
        problem = cls(**sizes)
        problem.check()
        return problem

    def check(self) -> None:
        """Check the numbers against the kernel's definition.

        Raises:
            ProblemError: names the number, its value and the rule.

        """
        rules = [
            ("t", self.t, 0 <= self.t <= MOST_TOKENS, f"from 0 to {MOST_TOKENS}"),
            ("h", self.h, 1 <= self.h <= MOST_HEADS, f"from 1 to {MOST_HEADS}"),
        ]
        rule = f"a multiple of {MULTIPLE} elements, below 2^40"
        for name in ("x_token_stride", "x_head_stride"):
            stride = getattr(self, name)
            rules.append((name, stride, 0 <= stride < 2**40 and stride % MULTIPLE == 0, rule))
        for name, value, holds, what in rules:
            if not holds:
                raise ProblemError(f"`{name}` must be {what}, not {value}", where=KERNEL)
