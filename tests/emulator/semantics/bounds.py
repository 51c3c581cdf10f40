"""How far approximate instructions may be from the exact value (PTX ISA 9.7.3, 9.7.4)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The largest error: the sum of an absolute, a relative, and one in ulp of the result's type.

    `bits` are those of the type's significand, the hidden one included, and `least` is its least
    normal number; `reach` is the largest operand that the manual speaks of.
    """

    absolute: float = 0.0
    relative: float = 0.0
    ulps: float = 0.0
    bits: int = 24
    least: float = 2.0**-126
    reach: float = np.inf

    def of(self, exact: Reals) -> Reals:
        """The error that is allowed at each exact value."""
        size = np.abs(np.where(np.isfinite(exact), exact, 0.0))
        spacing = 2.0 ** (np.floor(np.log2(np.maximum(size, self.least))) + 1 - self.bits)
        return self.absolute + self.relative * size + self.ulps * spacing


BOUNDS = {
    "div.full.f32": Bound(ulps=2),
    "rcp.approx.f32": Bound(ulps=1),
    "rsqrt.approx.ftz.f32": Bound(relative=2.0**-22.9, ulps=0.5),
    "sin.approx.f32": Bound(absolute=2.0**-20.5, reach=2 * np.pi),
    "cos.approx.f32": Bound(absolute=2.0**-20.5, reach=2 * np.pi),
    "lg2.approx.f32": Bound(absolute=2.0**-22, relative=2.0**-22),
    "ex2.approx.ftz.f32": Bound(ulps=2.5),
    # a subnormal result of an H200 is cut, not rounded: half of their spacing more
    "ex2.approx.f16x2": Bound(
        absolute=2.0**-25, relative=2.0**-9.9, ulps=0.5, bits=11, least=2.0**-14
    ),
    "tanh.approx.f32": Bound(relative=2.0**-11),
}
"""Instruction → its stated error; half an ulp more where that is of the value before rounding."""
EXACT = Bound()


def bound_of(text: str) -> Bound:
    """The bound of an instruction; those not in the table are exact."""
    return BOUNDS.get(text.split(" ", maxsplit=1)[0], EXACT)
