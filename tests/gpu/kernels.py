"""Small CUDA kernels on the real device, with the face of `tests.kv.device.Device`."""

import ctypes
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from kernelpack.emulator.numbers import scalar
from kernelpack.emulator.ptx.parser import parse
from kernelpack.runtime.driver import connect
from kernelpack.runtime.memory import Memory
from kernelpack.runtime.memory import read as read_memory
from kernelpack.runtime.tensormap import encode
from kernelpack.spec.arch import Arch
from kernelpack.spec.tensormap import TensorMap
from kernelpack.toolchain.locate import find
from kernelpack.toolchain.ptxas import assemble
from tests.gpu.arrays import DEVICE
from tests.kv.device import Constants, compiled

ARCH = "sm_90a"
_MAX_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class Gpu:
    """Memory of the real device, and kernels that run on it."""

    def __init__(self) -> None:
        self._driver, self._kept = connect(), []

    def put(self, array: np.ndarray) -> int:
        """The address of a copy of an array, kept as long as this is."""
        memory = Memory(self._driver, array.nbytes, DEVICE)
        memory.write(array)
        self._kept.append(memory)
        return memory.address

    def read(self, address: int, size: int) -> np.ndarray:
        """Bytes at an address."""
        found = np.empty(size, np.uint8)
        read_memory(self._driver, address, found, DEVICE)
        return found

    def run(
        self,
        text: str,
        constants: Mapping[str, object],
        *arguments: Any,
        threads: int = 32,
        shared_bytes: int = 0,
    ) -> None:
        """Run the kernel `test` and wait; arrays that may be written are filled."""
        constants = tuple(constants.items())
        parameters = parse(compiled(text, constants, ARCH).text).entry("test").parameters
        placed = {id(a): self.put(a) for a in arguments if isinstance(a, np.ndarray)}
        pairs = zip(arguments, parameters, strict=True)
        packed = [self._packed(given, parameter, placed) for given, parameter in pairs]
        with self._driver.current(DEVICE):
            self._start(_image(text, constants), packed, threads, shared_bytes)
        for array in arguments:
            if isinstance(array, np.ndarray) and array.flags.writeable:
                raw = self.read(placed[id(array)], array.nbytes)
                array[...] = raw.view(array.dtype).reshape(array.shape)

    def _packed(self, given: Any, parameter: Any, placed: Mapping[int, int]) -> bytes:
        if isinstance(given, TensorMap):
            return encode(self._driver, given, DEVICE)
        if isinstance(given, np.ndarray):
            return placed[id(given)].to_bytes(8, "little")
        number = scalar(given, parameter)
        return (number.value % (1 << number.dtype.bits)).to_bytes(number.dtype.bits // 8, "little")

    def _start(self, image: bytes, packed: list[bytes], threads: int, shared_bytes: int) -> None:
        call = self._driver.call
        library = call("cuLibraryLoadData", image, None, None, 0, None, None, 0)
        kernel = call("cuLibraryGetKernel", library, b"test")
        kind = self._driver.api.CUfunction_attribute(_MAX_SHARED)
        call("cuKernelSetAttribute", kind, shared_bytes, kernel, DEVICE)
        function = call("cuKernelGetFunction", kernel)
        buffers = [_aligned(data) for data in packed]
        pointers = (ctypes.c_void_p * len(buffers))(*(address for _, address in buffers))
        parameters = ctypes.addressof(pointers)
        call("cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, shared_bytes, 0, parameters, 0)
        call("cuCtxSynchronize")
        call("cuLibraryUnload", library)


def _aligned(data: bytes) -> tuple[ctypes.Array[ctypes.c_char], int]:
    """A copy at a multiple of 64 bytes, as a tensor map must lie, and its address."""
    buffer = ctypes.create_string_buffer(len(data) + 64)
    address = -(-ctypes.addressof(buffer) // 64) * 64
    ctypes.memmove(address, data, len(data))
    return buffer, address


@lru_cache(maxsize=64)
def _image(text: str, constants: Constants) -> bytes:
    return assemble(compiled(text, constants, ARCH), find(), Arch(ARCH)).image
