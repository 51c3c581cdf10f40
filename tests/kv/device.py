"""Small CUDA kernels over the headers of `templates/include`, run on the emulator."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.numbers import scalar
from kernelpack.emulator.ptx.parser import Program, parse
from kernelpack.emulator.run import run
from kernelpack.render.includes import closure
from kernelpack.spec.artifact import Ptx, Source
from kernelpack.spec.launch import Dim3, Plan, Pointer
from kernelpack.spec.tensormap import TensorMap
from tests import kept

TEMPLATES = Path(__file__).parents[2] / "templates"


def source(text: str, constants: Mapping[str, object]) -> Source:
    """A text below `constexpr` constants and type names (words that C++ knows)."""
    name = "test.cu"
    lines = [
        f"using {key} = {value};" if isinstance(value, str) else f"constexpr int {key} = {value};"
        for key, value in constants.items()
    ]
    includes, _, body = text.partition("using namespace kp;\n")
    whole = "\n".join([includes, "using namespace kp;", *lines, body])
    headers = closure(whole, name, TEMPLATES)
    return Source(variant_id="test", entry="test", name=name, text=whole, headers=headers)


Constants = tuple[tuple[str, object], ...]


@lru_cache(maxsize=64)
def compiled(text: str, constants: Constants, arch: str) -> Ptx:
    """The PTX of a kernel."""
    return kept.compiled(source(text, dict(constants)), arch)


@lru_cache(maxsize=64)
def _program(text: str, constants: Constants, arch: str) -> Program:
    return parse(compiled(text, constants, arch).text)


class Device:
    """Emulated memory, and kernels that run on it.

    Args:
        arch: the target.

    """

    def __init__(self, arch: str = "sm_100a") -> None:
        self.arch, self.memory = arch, GlobalMemory(1 << 24)

    def put(self, array: np.ndarray) -> int:
        """The address of a copy of an array."""
        return self.memory.put(np.ascontiguousarray(array), "array")

    def read(self, address: int, size: int) -> np.ndarray:
        """Bytes at an address."""
        return self.memory.read(address, size)

    def run(
        self,
        text: str,
        constants: Mapping[str, object],
        *arguments: Any,
        threads: int = 32,
        shared_bytes: int = 0,
        grid: int = 1,
        cluster: int = 1,
    ) -> None:
        """Run the kernel `test`; a finding is an error. Arrays that may be written are filled."""
        program = _program(text, tuple(constants.items()), self.arch)
        parameters = program.entry("test").parameters
        placed = {id(a): self.put(a) for a in arguments if isinstance(a, np.ndarray)}
        plan = Plan(
            entry="test",
            grid=Dim3(grid),
            block=Dim3(threads),
            cluster=Dim3(cluster),
            shared_bytes=shared_bytes,
            arguments=tuple(
                Pointer(placed[id(given)])
                if isinstance(given, np.ndarray)
                else given
                if isinstance(given, TensorMap)
                else scalar(given, parameter)
                for given, parameter in zip(arguments, parameters, strict=True)
            ),
        )
        result = run(program, plan, self.memory, level="strict").raise_on_error()
        assert [str(finding) for finding in result.findings] == []
        for array in arguments:
            if isinstance(array, np.ndarray) and array.flags.writeable:
                raw = self.memory.read(placed[id(array)], array.nbytes)
                array[...] = raw.view(array.dtype).reshape(array.shape)


def unswizzled(raw: np.ndarray, span: int) -> np.ndarray:
    """Rows of `span` bytes as they were before the swizzle of that width, base at 1024 bytes.

    CUDA driver API, CU_TENSOR_MAP_SWIZZLE: of an address, the bits of the 16-byte chunk are xored
    with the three (two, one) bits from 7 on.
    """
    address = np.arange(raw.size)
    chunks = span // 16
    return raw.ravel()[address ^ (address >> 7) % chunks * 16].reshape(-1, span)
