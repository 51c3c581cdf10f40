"""The few calls of the CUDA runtime and driver that a host program of ours needs."""

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TO_DEVICE, _TO_HOST = 1, 2
_DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""
_CLUSTER = 4
"""CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION."""
_PROMOTE_128 = 2
_ELEMENTS = {"uint8": 0, "int32": 3, "float16": 6, "float32": 7, "bfloat16": 9}
"""CUtensorMapDataType, by numpy's name."""

Dims = tuple[int, int, int]


class _Attribute(ctypes.Structure):
    _fields_ = (("id", c_uint), ("pad", c_uint), ("value", c_uint * 16))


class _Config(ctypes.Structure):
    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", c_uint),
    )


class TensorMap(ctypes.Structure):
    """The 128 bytes of a tensor map."""

    _fields_ = (("words", c_uint64 * 16),)


class Device:
    """Memory, modules, tensor maps and launches. A call that fails is our bug."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcudart.so.13")
        self.driver = ctypes.CDLL("libcuda.so.1")

    def room(self, size: int) -> c_void_p:
        """Fresh device memory."""
        address = c_void_p()
        assert self.cuda.cudaMalloc(byref(address), c_size_t(size)) == 0
        return address

    def put(self, array: NDArray[Any]) -> c_void_p:
        """An array's copy on the device."""
        address = self.room(array.nbytes)
        self._copy(address, array.ctypes.data, array.nbytes, _TO_DEVICE)
        return address

    def get(self, address: c_void_p, array: NDArray[Any]) -> None:
        """Fill an array from the device, once all kernels have ended."""
        assert self.cuda.cudaDeviceSynchronize() == 0
        self._copy(c_void_p(array.ctypes.data), address.value or 0, array.nbytes, _TO_HOST)

    def _copy(self, to: c_void_p, of: int, size: int, kind: int) -> None:
        assert self.cuda.cudaMemcpy(to, c_void_p(of), c_size_t(size), kind) == 0

    def load(self, ptx: str, entry: str) -> c_void_p:
        """A kernel of a PTX text."""
        module, function = c_void_p(), c_void_p()
        assert self.driver.cuModuleLoadData(byref(module), ptx.encode()) == 0
        assert self.driver.cuModuleGetFunction(byref(function), module, entry.encode()) == 0
        return function

    def tensor_map(
        self, address: c_void_p, array: NDArray[Any], box: Sequence[int], swizzle: int
    ) -> TensorMap:
        """A map of an array in C order; zeros beyond its edges."""
        made, rank = TensorMap(), array.ndim
        dims = (c_uint64 * rank)(*reversed(array.shape))
        strides = (c_uint64 * rank)(*reversed(array.strides[:-1]))
        boxes, steps = (c_uint32 * rank)(*reversed(box)), (c_uint32 * rank)(*(1,) * rank)
        status = self.driver.cuTensorMapEncodeTiled(
            *(byref(made), _ELEMENTS[array.dtype.name], rank, address, dims, strides),
            *(boxes, steps, 0, swizzle, _PROMOTE_128, 0),
        )
        assert status == 0
        return made

    def launch(
        self,
        function: c_void_p,
        grid: Dims,
        block: Dims,
        arguments: Sequence[Any],
        *,
        shared: int = 0,
        cluster: Dims = (1, 1, 1),
    ) -> None:
        """Launch a kernel with ctypes' values as its parameters."""
        assert self.driver.cuFuncSetAttribute(function, _DYNAMIC_SHARED, c_int(shared)) == 0
        attribute = _Attribute(id=_CLUSTER, value=(c_uint * 16)(*cluster))
        config = _Config(
            grid=(c_uint * 3)(*grid),
            block=(c_uint * 3)(*block),
            shared=shared,
            attributes=ctypes.pointer(attribute),
            count=1,
        )
        places = (c_void_p * len(arguments))(*(ctypes.addressof(value) for value in arguments))
        assert self.driver.cuLaunchKernelEx(byref(config), function, places, None) == 0


def scalar(value: np.generic) -> Any:  # noqa: ANN401 - one of ctypes' numbers
    """A number of numpy as a kernel's parameter."""
    return (ctypes.c_byte * value.nbytes).from_buffer_copy(value.tobytes())
