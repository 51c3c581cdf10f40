"""Times that were measured on a device, and how a choice is made of them. Pure; integers alone.

A problem is chosen for as the nearest measured one that is near at all. Sizes are compared by their
logarithms: a problem is near where each size is at most twice, and at least half, the measured one,
and 0 only where that is 0; the nearest has the least sum of differences, of equals the first. It
must have a time of a variant that serves. Then the variant of the least time is taken, of equals
the first by id. Where no measured problem is near, the manifest's costs choose. The C++ loader
computes the same (detail/tuned.hpp), so its logarithms are integers too.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kernelpack.spec.arch import Capability

OCTAVE = 256
"""What a size that is twice as large differs by."""
_MANTISSA_BITS = 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A problem that was measured: its sizes without the device's, and nanoseconds by variant."""

    sizes: Mapping[str, int]
    nanoseconds: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedKernel:
    """A kernel's times.

    Attributes:
        kernel: the stem.
        images: the digest of each variant's machine code that was measured, by id.
        problems: what was measured.

    """

    kernel: str
    images: Mapping[str, str]
    problems: tuple[Measured, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedDevice:
    """What times are of: devices that are called so, have this capability and so many SMs."""

    name: str
    capability: Capability
    sm_count: int

    def __str__(self) -> str:
        major, minor = self.capability
        return f"{self.name} (compute capability {major}.{minor}, {self.sm_count} multiprocessors)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """Measured times of some kernels on one kind of device; `driver` is for people."""

    device: TunedDevice
    driver: str
    kernels: tuple[TunedKernel, ...]

    def problems(self, kernel: str) -> tuple[Measured, ...]:
        """What was measured of a kernel."""
        return next((one.problems for one in self.kernels if one.kernel == kernel), ())


def times_for(
    problems: Iterable[Measured], sizes: Mapping[str, float], serving: Collection[str]
) -> Mapping[str, int]:
    """The times of the nearest measured problem, of variants that serve; empty where none is."""
    best: tuple[int, dict[str, int]] | None = None
    for problem in problems:
        apart = distance(sizes, problem.sizes)
        if apart is None or (best and best[0] <= apart):
            continue
        times = {one: time for one, time in problem.nanoseconds.items() if one in serving}
        if times:
            best = apart, times
    return best[1] if best else {}


def distance(sizes: Mapping[str, float], measured: Mapping[str, int]) -> int | None:
    """How far a problem is from a measured one; None where it is not near."""
    total = 0
    for name, value in measured.items():
        here = int(sizes.get(name, 0))
        if here == value:
            continue
        apart = abs(log2(here) - log2(value)) if here > 0 and value > 0 else OCTAVE + 1
        if apart > OCTAVE:
            return None
        total += apart
    return total


def log2(value: int) -> int:
    """The logarithm to base two in 256ths, cut; of a number above 0."""
    exponent = value.bit_length() - 1
    shift = _MANTISSA_BITS - exponent
    mantissa = value << shift if shift >= 0 else value >> -shift
    result = exponent
    for _ in range(OCTAVE.bit_length() - 1):
        mantissa = mantissa * mantissa >> _MANTISSA_BITS
        bit = mantissa >> (_MANTISSA_BITS + 1)
        result, mantissa = 2 * result + bit, mantissa >> bit
    return result
