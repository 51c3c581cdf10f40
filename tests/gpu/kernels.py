"""Small CUDA kernels on the real device, with the face of `tests.kv.device.Device`.

A machine with a GPU need have no compiler: `--make-kernels FOLDER` runs the tests on the emulator,
where there is one, and leaves in FOLDER what `--kernels FOLDER` launches.
"""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelpack.emulator.numbers import scalar
from kernelpack.emulator.ptx.parser import parse
from kernelpack.errors import ToolchainError
from kernelpack.runtime.driver import connect
from kernelpack.runtime.memory import Memory
from kernelpack.runtime.memory import read as read_memory
from kernelpack.runtime.tensormap import encode
from kernelpack.spec.arch import Arch
from kernelpack.spec.tensormap import TensorMap
from kernelpack.toolchain.locate import find
from kernelpack.toolchain.ptxas import assemble
from tests.gpu.arrays import DEVICE
from tests.kv.device import Constants, Device, compiled, source

ARCH = "sm_90a"
_MAX_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel: its PTX, which names the parameters, and its machine code."""

    ptx: str
    cubin: bytes


class Maker(Device):
    """The emulator, which keeps what it runs for a machine without compilers."""

    def __init__(self, folder: Path) -> None:
        super().__init__(ARCH)
        self.folder = folder

    def run(self, text: str, constants: Mapping[str, object], *given: Any, **launch: Any) -> None:
        """Run the kernel `test` on the emulator, and keep it."""
        super().run(text, constants, *given, **launch)
        made, name = _made(text, tuple(constants.items())), _name(text, constants)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{name}.ptx").write_text(made.ptx)
        (self.folder / f"{name}.cubin").write_bytes(made.cubin)


class Gpu:
    """Memory of the real device, and kernels that run on it.

    Args:
        folder: what a `Maker` kept; without it kernels are compiled here.

    """

    def __init__(self, folder: Path | None) -> None:
        self._driver, self._kept, self._folder = connect(), [], folder

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
        kernel = self._kernel(text, constants)
        parameters = parse(kernel.ptx).entry("test").parameters
        placed = {id(a): self.put(a) for a in arguments if isinstance(a, np.ndarray)}
        pairs = zip(arguments, parameters, strict=True)
        packed = [self._packed(given, parameter, placed) for given, parameter in pairs]
        with self._driver.current(DEVICE):
            self._start(kernel.cubin, packed, threads, shared_bytes)
        for array in arguments:
            if isinstance(array, np.ndarray) and array.flags.writeable:
                raw = self.read(placed[id(array)], array.nbytes)
                array[...] = raw.view(array.dtype).reshape(array.shape)

    def _kernel(self, text: str, constants: Mapping[str, object]) -> Compiled:
        """The kernel out of the folder, or compiled; skips the test where neither is possible."""
        if self._folder is None:
            try:
                return _made(text, tuple(constants.items()))
            except ToolchainError as error:
                pytest.skip(f"needs a compiler, or --kernels FOLDER: {error.what}")
        kept = self._folder / f"{_name(text, constants)}.ptx"
        if not kept.exists():
            pytest.fail(f"{self._folder} is not of this checkout: fill it with --make-kernels")
        return Compiled(kept.read_text(), kept.with_suffix(".cubin").read_bytes())

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


@cache
def _made(text: str, constants: Constants) -> Compiled:
    ptx = compiled(text, constants, ARCH)
    return Compiled(ptx.text, assemble(ptx, find(), Arch(ARCH)).image)


def _name(text: str, constants: Mapping[str, object]) -> str:
    """Of a kernel's files: a digest of all its source, headers too."""
    whole = source(text, constants)
    return sha256(repr((whole.text, whole.headers)).encode()).hexdigest()[:32]
