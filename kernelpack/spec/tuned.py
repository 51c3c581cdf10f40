"""Times that were measured on a device, and how a choice is made of them. Pure; integers alone.

Where exactly a problem was measured, the variant of the least time is taken, of equals the first by
id. A problem between two measured ones takes what both agree on: the one no size of which is
larger, and the one no size of which is smaller, each the nearest such and at most half an octave, a
factor of 1.41, away in any size. They agree where one variant is the fastest of those that serve in
both, by a part in 32 at least before the one that costs choose. Everywhere else the manifest's
costs choose: times have cliffs, and one neighbour says nothing (ADR 0036). Nearness is a sum of
logarithms. The C++ loader computes the same (detail/tuned.hpp), so they are integers.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kernelpack.spec.arch import Capability

OCTAVE = 256
"""The distance of a size that is twice as large."""
REACH = OCTAVE // 2
"""Of a measured problem that is near, in any size."""
PARTS = 32
"""Before what costs choose, a variant must be faster by one of so many parts."""
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
    """The device of some times: its name, capability and number of SMs."""

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
        """The measurements of a kernel."""
        return next((one.problems for one in self.kernels if one.kernel == kernel), ())


def chosen(
    problems: Iterable[Measured], sizes: Mapping[str, float], serving: Collection[str], usual: str
) -> str:
    """The id of the variant to take among those that serve; `usual` is what costs choose."""
    below: tuple[int, Measured] | None = None
    above: tuple[int, Measured] | None = None
    for problem in problems:
        place = place_of(sizes, problem.sizes)
        if place is None or not any(problem.nanoseconds.get(one) for one in serving):
            continue
        if place.is_below and place.is_above:
            return fastest(problem, serving)
        if not problem.nanoseconds.get(usual):
            continue
        if place.is_below and (below is None or place.apart < below[0]):
            below = place.apart, problem
        if place.is_above and (above is None or place.apart < above[0]):
            above = place.apart, problem
    if below is None or above is None:
        return usual
    return _agreed(below[1], above[1], serving, usual)


def _agreed(below: Measured, above: Measured, serving: Collection[str], usual: str) -> str:
    """The clearly fastest in both; `usual` if there is none."""
    best = fastest(below, serving)
    for problem in (below, above):
        time, usual_time = (
            problem.nanoseconds[fastest(problem, serving)],
            problem.nanoseconds[usual],
        )
        if fastest(problem, serving) != best or time * (PARTS + 1) > usual_time * PARTS:
            return usual
    return best


def fastest(problem: Measured, serving: Collection[str]) -> str:
    """The variant of the least time among those that serve; of equals the first by id."""
    times = problem.nanoseconds
    return min((one for one in serving if times.get(one)), key=lambda one: (times[one], one))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a measured problem lies: how far, and whether no size of it is larger, or smaller."""

    apart: int
    is_below: bool
    is_above: bool


def place_of(sizes: Mapping[str, float], measured: Mapping[str, int]) -> Place | None:
    """Where a measured problem lies from one of some sizes; None where it is not near."""
    apart, is_below, is_above = 0, True, True
    for name, value in measured.items():
        here = int(sizes.get(name, 0))
        if here == value:
            continue
        far = abs(log2(here) - log2(value)) if here > 0 and value > 0 else REACH + 1
        if far > REACH:
            return None
        apart, is_below, is_above = (
            apart + far,
            is_below and value < here,
            is_above and value > here,
        )
    return Place(apart=apart, is_below=is_below, is_above=is_above)


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
