"""A tensor map as the 128 bytes the TMA unit reads; encoded by the driver, kept by value."""

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from kernelpack.runtime.driver import Driver
from kernelpack.spec.params import TENSOR_MAP_BYTES
from kernelpack.spec.tensormap import TensorMap

KEPT = 1024  # maps remembered for each driver; the least recently used goes first

Encode = Callable[[TensorMap], bytes]


def encoder(driver: Driver, device: int) -> Encode:
    """An encoder that asks the driver once for each different map. Shared by threads."""

    @lru_cache(maxsize=KEPT)
    def remembered(tensor_map: TensorMap) -> bytes:
        return encode(driver, tensor_map, device)

    return remembered


def encode(driver: Driver, tensor_map: TensorMap, device: int) -> bytes:
    """Encode one map; `spec.tensormap` has checked every rule before, so an error is unexpected.

    The driver wants a context to be current, whichever it is; a thread of the caller may have none.
    It encodes no map over nothing: that of an absent argument is zeros, which no kernel looks at.
    """
    if tensor_map.address == 0:
        return bytes(TENSOR_MAP_BYTES)
    with driver.current(device):
        opaque = driver.call("cuTensorMapEncodeTiled", *_arguments(driver.api, tensor_map))
        return ctypes.string_at(int(opaque.getPtr()), TENSOR_MAP_BYTES)


def _arguments(api: Any, tensor_map: TensorMap) -> tuple[object, ...]:  # noqa: ANN401 - untyped
    return (
        api.CUtensorMapDataType(int(tensor_map.element)),
        tensor_map.rank,
        tensor_map.address,
        [api.cuuint64_t(size) for size in tensor_map.dims],
        [api.cuuint64_t(stride) for stride in tensor_map.strides_bytes],
        [api.cuuint32_t(size) for size in tensor_map.box],
        [api.cuuint32_t(stride) for stride in tensor_map.element_strides],
        api.CUtensorMapInterleave(int(tensor_map.interleave)),
        api.CUtensorMapSwizzle(int(tensor_map.swizzle)),
        api.CUtensorMapL2promotion(int(tensor_map.promotion)),
        api.CUtensorMapFloatOOBfill(int(tensor_map.fill)),
    )
