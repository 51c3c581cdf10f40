"""Every tensor map that a manifest's variants ask for, over all cases; listed without a GPU."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from kernelpack.errors import KernelpackError
from kernelpack.kernels.definition import Case
from kernelpack.kernels.registry import KERNELS
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.runtime.driver import Driver
from kernelpack.runtime.tensormap import encode
from kernelpack.spec.arch import Arch
from kernelpack.spec.params import MapParam
from kernelpack.spec.select import judge
from kernelpack.spec.tensormap import TensorMap, resolve
from kernelpack.spec.variant import Variant

MANIFESTS = tuple(sorted((Path(__file__).parents[2] / "manifests").glob("*.yaml")))
TARGETS = (Arch("sm_100a"), Arch("sm_90a"))
ADDRESS = 1 << 32
"""Of every array: encoding a map reads nothing of what it describes."""


@cache
def distinct_maps(target: Arch) -> tuple[TensorMap, ...]:
    """Each map of a target's variants once, whatever it is called; in the order of the manifests.

    A case counts for a variant that serves it on the GPU the target is made for.
    """
    found: dict[TensorMap, TensorMap] = {}
    for path in MANIFESTS:
        listed = expand(load(path), [target])
        cases = KERNELS[listed[0].kernel].cases() if listed else ()
        for variant in listed:
            for tensor_map, name in _maps(variant, cases):
                found.setdefault(tensor_map, replace(tensor_map, name=name))
    return tuple(found.values())


def _maps(variant: Variant, cases: Iterable[Case]) -> Iterator[tuple[TensorMap, str]]:
    """The maps of a variant, nameless, and their names."""
    maps = [param.map for param in variant.params if isinstance(param, MapParam)]
    nameless = [(replace(spec, name=""), spec.name) for spec in maps]
    for case in cases if maps else ():
        sizes = {**case.sizes, "sm_count": variant.arch.multiprocessors}
        if judge(variant, sizes, variant.arch.capabilities[0]).cost is not None:
            yield from ((resolve(spec, sizes, ADDRESS), name) for spec, name in nameless)


def refused(driver: Driver, maps: Iterable[TensorMap], device: int = 0) -> list[str]:
    """The maps that a driver refuses to encode, each with what it said."""
    said = []
    for tensor_map in maps:
        try:
            encode(driver, tensor_map, device)
        except KernelpackError as error:
            said.append(f"{tensor_map}: {error}")
    return said
