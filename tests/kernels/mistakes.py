"""Mistakes of a manifest, as changes of a variant: what a person could write and must not ship."""

from collections.abc import Callable
from dataclasses import replace

from kernelpack.spec.expr import constant
from kernelpack.spec.params import MapParam, Param
from kernelpack.spec.variant import Variant

ONE = constant(1)
Mistake = Callable[[Variant], Variant]
"""A variant as it would be with the mistake."""


def parameter(name: str, **changes: object) -> Mistake:
    """Another value instead of a parameter's."""

    def make(param: Param) -> Param:
        return replace(param, **changes) if param.name == name else param

    return lambda variant: replace(variant, params=tuple(map(make, variant.params)))


def tensor_map(name: str, **changes: object) -> Mistake:
    """Another tensor map; sides are put at their place, `{1: 32}`."""

    def make(param: Param) -> Param:
        if not (isinstance(param, MapParam) and param.name == name):
            return param
        values = {k: _put(getattr(param.map, k), v) for k, v in changes.items()}
        return replace(param, map=replace(param.map, **values))

    return lambda variant: replace(variant, params=tuple(map(make, variant.params)))


def _put(sides: object, change: object) -> object:
    if not (isinstance(change, dict) and isinstance(sides, tuple)):
        return change
    return tuple(change.get(index, side) for index, side in enumerate(sides))


def launch(**changes: object) -> Mistake:
    """Another grid, block, cluster or size of shared memory."""
    return lambda variant: replace(variant, launch=replace(variant.launch, **changes))


def swap(first: str, second: str) -> Mistake:
    """Two swapped parameters."""

    def make(variant: Variant) -> Variant:
        named = {param.name: param for param in variant.params}
        other = {first: named[second], second: named[first]}
        return replace(variant, params=tuple(other.get(p.name, p) for p in variant.params))

    return make
