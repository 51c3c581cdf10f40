"""Source to PTX, by the front end that the toolchain names."""

from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Ptx, Source
from kernelpack.toolchain.nvcc import compile_with_nvcc
from kernelpack.toolchain.nvrtc import compile_in_process
from kernelpack.toolchain.toolchain import Toolchain


def compile(source: Source, toolchain: Toolchain, arch: Arch) -> Ptx:  # noqa: A001
    """PTX of a source, with normalised paths.

    Call it in a worker process: NVRTC stays loaded, and one process serves one release of it.

    Raises:
        CompileError: the source has errors or warnings; at the first one's template line.
        ToolchainError: a compiler is missing or did not run to its end.

    """
    by = compile_with_nvcc if toolchain.front_end == "nvcc" else compile_in_process
    return by(source, toolchain, arch)
