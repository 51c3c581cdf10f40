"""Source to PTX by the nvcc program: the reference front end; it needs a host g++."""

import shutil
from functools import lru_cache
from pathlib import Path

from kernelpack.errors import CompileError, ToolchainError
from kernelpack.process import ENVIRONMENT, Completed, run
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Ptx, Source
from kernelpack.toolchain.flags import FRONT_END_FLAGS, front_end_arch
from kernelpack.toolchain.lines import INCLUDE, Paths, messages, paths_of, refusal
from kernelpack.toolchain.normalise import normalise
from kernelpack.toolchain.scratch import scratch
from kernelpack.toolchain.toolchain import Toolchain

HOST_COMPILER = "g++"
OUTPUT = "kernel.ptx"


def compile_with_nvcc(source: Source, toolchain: Toolchain, arch: Arch) -> Ptx:
    """Compile with the toolchain's nvcc, in a folder of its own.

    Raises:
        CompileError: the source has errors or warnings; at the first one's line.
        ToolchainError: there is no host g++, nvcc did not run to its end, or there is no room for
            temporary files.

    """
    compiler = host_compiler()
    with scratch() as folder:
        _write(source, folder)
        done = run(
            _command(source, toolchain, arch, compiler),
            cwd=folder,
            env=ENVIRONMENT | {"TMPDIR": str(folder)},
        )
        paths = paths_of(source, {folder, folder.resolve()}, toolchain.include_dirs)
        _check(done, paths, source.variant_id)
        return Ptx(text=normalise((folder / OUTPUT).read_text(encoding="utf-8"), paths))


@lru_cache
def host_compiler() -> Path:
    """The host g++.

    Raises:
        ToolchainError: there is none on PATH.

    """
    found = shutil.which(HOST_COMPILER)
    if found is None:
        raise ToolchainError(
            f"the nvcc front end needs a host {HOST_COMPILER}, and none is on PATH",
            hint="install one (apt install g++), or use the front end nvrtc, which needs none",
        )
    return Path(found)


@lru_cache
def host_version() -> str:
    """The host g++ as it names itself; its headers and its preprocessor take part in the PTX.

    Raises:
        ToolchainError: there is none on PATH, or it does not say.

    """
    compiler = host_compiler()
    done = run([str(compiler), "--version"])
    if done.returncode or not done.stdout:
        raise ToolchainError("does not say its version", where=str(compiler))
    return done.stdout.split("\n")[0]


def _command(source: Source, toolchain: Toolchain, arch: Arch, compiler: Path) -> list[str]:
    assert toolchain.nvcc is not None
    return [
        str(toolchain.nvcc),
        *FRONT_END_FLAGS["nvcc"],
        front_end_arch(arch),
        f"-ccbin={compiler}",
        f"-I{INCLUDE}",
        f"-o={OUTPUT}",
        source.name,
    ]


def _write(source: Source, folder: Path) -> None:
    files = {source.name: source.text}
    files |= {f"{INCLUDE}/{header.path}": header.text for header in source.headers}
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def _check(done: Completed, paths: Paths, variant_id: str) -> None:
    if done.killed_by:
        raise ToolchainError(f"nvcc was killed by {done.killed_by}", where=variant_id)
    log = done.stdout + done.stderr
    if found := list(messages(log, paths)):
        raise refusal(found, variant_id)
    if done.returncode:
        raise CompileError(log.strip() or "nvcc does not say why", where=variant_id)
