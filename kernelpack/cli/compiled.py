"""A program of one CUDA source, compiled for the emulator: what `emulate --compile` does first."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelpack.emulate.devices import Device
from kernelpack.errors import CompileError, KernelpackError, ToolchainError
from kernelpack.process import ENVIRONMENT, run
from kernelpack.spec.arch import TARGETS
from kernelpack.toolchain.locate import Toolchain
from kernelpack.toolchain.nvcc import host_compiler
from kernelpack.toolchain.scratch import scratch

SUFFIXES = (".cu", ".cpp", ".cc", ".cxx")
FLAGS = ("-std=c++17", "-O2", "-lineinfo", "--compress-mode=none", "-cudart", "none")
"""PTX that the emulator finds and lines that it can name; the runtime is the stand-in's."""


@contextmanager
def compiled(
    source: Path, device: Device, toolchain: Toolchain, headers: Path, libraries: Path
) -> Iterator[Path]:
    """The program of a source, until the block ends.

    Args:
        source: one file of CUDA or C++.
        device: what it is compiled for.
        toolchain: whose nvcc compiles it.
        headers: kernelpack's own, which it may include as `<kp/…>`.
        libraries: the folder of the stand-in's libraries.

    Raises:
        KernelpackError: it is not a source.
        CompileError: nvcc refuses it; with what nvcc says.
        ToolchainError: there is no nvcc, or no host compiler for it.

    """
    if source.suffix not in SUFFIXES or not source.is_file():
        hint = f"give a file that ends in {', '.join(SUFFIXES)}"
        raise KernelpackError("is not a source to compile", where=str(source), hint=hint)
    if toolchain.nvcc is None:
        raise ToolchainError("has no nvcc program", where=str(toolchain))
    with scratch() as folder:
        program = folder / source.stem
        arch = _arch(device)
        command = [
            *(str(toolchain.nvcc), *FLAGS, f"-ccbin={host_compiler()}", f"-I{headers}"),
            *("-gencode", f"arch={arch},code={arch}", str(source), "-o", str(program)),
            *(f"-L{libraries}", "-lcudart", "-lcuda"),
        ]
        done = run(command, env=ENVIRONMENT | {"TMPDIR": str(folder)})
        if done.returncode:
            said = (done.stderr + done.stdout).strip() or f"nvcc answered {done.returncode}"
            raise CompileError(said, where=str(source))
        yield program


def _arch(device: Device) -> str:
    """The virtual architecture of a device: `compute_90a` of an H100."""
    names = [n for n, target in TARGETS.items() if device.capability in target.capabilities]
    return names[0].replace("sm_", "compute_")
