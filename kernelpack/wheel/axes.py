"""The cost of each axis of a manifest in a bundle: where to cut one that has become too large."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kernelpack.bundle.reader import Bundle

Code = tuple[str, int]
"""Machine code of an entry: its digest, and the bytes of its frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """An axis of a kernel: how many values it has, and the bytes that all but one of them take.

    The value that is thought to remain is the largest one, so a cut saves at least this.
    """

    kernel: str
    axis: str
    values: int
    size_bytes: int

    def __str__(self) -> str:
        megabytes = f"{self.size_bytes / 1e6:.1f} MB"
        return f"{self.axis} of {self.kernel}: {megabytes} for {self.values} values"


def costs(bundle: Bundle, ids: Iterable[str]) -> tuple[Cost, ...]:
    """Every axis that costs anything, the dearest first; shared machine code counts once."""
    found = sorted(_costs(bundle, ids), key=lambda c: (-c.size_bytes, c.kernel, c.axis))
    return tuple(cost for cost in found if cost.size_bytes)


def _costs(bundle: Bundle, ids: Iterable[str]) -> Iterator[Cost]:
    codes: dict[tuple[str, str], dict[object, set[Code]]] = {}
    for variant_id in ids:
        variant, code = bundle.variant(variant_id), _code(bundle, variant_id)
        for axis, value in variant.axes:
            codes.setdefault((variant.kernel, axis), {}).setdefault(value, set()).add(code)
    for (kernel, axis), by_value in codes.items():
        size = _bytes(set().union(*by_value.values())) - max(map(_bytes, by_value.values()))
        yield Cost(kernel=kernel, axis=axis, values=len(by_value), size_bytes=size)


def _code(bundle: Bundle, variant_id: str) -> Code:
    return bundle.find(variant_id).image_digest, bundle.frame_bytes(variant_id)


def _bytes(codes: set[Code]) -> int:
    return sum(size for _, size in codes)
