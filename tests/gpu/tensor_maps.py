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
    for variant in (v for path in MANIFESTS for v in expand(load(path)) if v.arch == target):
        for case in KERNELS[variant.kernel].cases():
            for tensor_map in _maps(variant, case):
                found.setdefault(replace(tensor_map, name=""), tensor_map)
    return tuple(found.values())


def _maps(variant: Variant, case: Case) -> Iterator[TensorMap]:
    sizes = {**case.sizes, "sm_count": variant.arch.multiprocessors}
    if judge(variant, sizes, variant.arch.capabilities[0]).cost is None:
        return
    for param in variant.params:
        if isinstance(param, MapParam):
            yield resolve(param.map, sizes, ADDRESS)


def refused(driver: Driver, maps: Iterable[TensorMap], device: int = 0) -> list[str]:
    """The maps that a driver refuses to encode, each with what it said."""
    said = []
    for tensor_map in maps:
        try:
            encode(driver, tensor_map, device)
        except KernelpackError as error:
            said.append(f"{tensor_map}: {error}")
    return said
