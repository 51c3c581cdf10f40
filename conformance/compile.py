"""Compile a program as its makers do, but for PTX inside it and the stand-in in place of CUDA's.

An executable is kept under a digest of its source's name, the command and the compiler, and is made
anew when one of them changes. What another compiler emits hangs on the files here that ask for it.
"""

import os
import sys
from hashlib import sha256
from pathlib import Path

from conformance.programs import INCLUDES, Program
from kernelpack import process
from kernelpack.errors import CompileError
from kernelpack.toolchain.toolchain import Toolchain

FLAGS = (
    "-std=c++17",
    "-O2",
    "-lineinfo",
    "--expt-relaxed-constexpr",
    "-gencode=arch=compute_100a,code=compute_100a",
    "--compress-mode=none",
    "-cudart=none",
    "-w",
)
_EMITTED = ("-std=c++20", "-shared", "-Xcompiler=-fPIC")
_HERE = Path(__file__).parent


def build(
    program: Program, sources: Path, root: Path, toolchain: Toolchain, libraries: Path
) -> Path:
    """The program's executable, opengemm's library or a compiler's PTX, made if it is not there.

    Args:
        program: what to compile.
        sources: the folder of the unpacked wheels.
        root: where executables are kept.
        toolchain: whose nvcc compiles.
        libraries: the folder of the stand-in, to link against.

    Raises:
        CompileError: nvcc refuses the source, or a compiler emits none.

    """
    flags = [
        *FLAGS,
        *(f"-I{path}" for path in toolchain.include_dirs),
        *(f"-I{sources / path}" for path in INCLUDES),
        *(flag.replace("-I", f"-I{sources}/") for flag in program.flags),
    ]
    parts = [program.source, flags, toolchain.digest, *_files(program)]
    key = sha256(repr(parts).encode()).hexdigest()[:16]
    made = root / "programs" / f"{program.name.replace(' ', '_')}-{key}"
    if made.is_file():
        return made
    made.parent.mkdir(parents=True, exist_ok=True)
    if program.compiler not in {"", "opengemm"}:
        return _emit(program, sources, made, toolchain, libraries)
    source = (_HERE.parent if program.is_ours else sources) / program.source
    if program.compiler:
        source = _emit(program, sources, made.with_suffix(".cu"), toolchain, libraries)
        flags = [*(flag for flag in flags if not flag.startswith("-std=")), *_EMITTED]
    _compile([*flags, str(source)], made, toolchain, libraries)
    return made


def _files(program: Program) -> list[str]:
    """What else the result hangs on: files here that are compiled, or have a compiler emit."""
    if program.is_ours:
        folder = (_HERE.parent / program.source).parent
        return [path.read_text() for path in sorted((*folder.iterdir(), *_HERE.glob("*.cuh")))]
    if not program.compiler:
        return []
    wheels = _HERE / "requirements" / f"{program.folder}.txt"
    files = sorted(_HERE.glob(f"{program.compiler}_*.py"))
    return [path.read_text() for path in (wheels, *files)]


def _compile(words: list[str], made: Path, toolchain: Toolchain, libraries: Path) -> None:
    assert toolchain.nvcc is not None
    link = [f"-L{libraries}", "-lcudart", "-lcuda"]
    command = [str(toolchain.nvcc), *words, *link, "-o", str(made.with_suffix(".part"))]
    done = process.run(command, env=_environment(toolchain, libraries))
    if done.returncode:
        raise CompileError((done.stdout + done.stderr)[-3000:], where=made.name)
    made.with_suffix(".part").rename(made)


def _emit(
    program: Program, sources: Path, path: Path, toolchain: Toolchain, libraries: Path
) -> Path:
    """Let a compiler of others write the kernel's source, or its PTX."""
    compiler, *words = program.source.split(":")
    script = _HERE / f"{compiler}_emit.py"
    done = process.run(
        [sys.executable, str(script), str(sources), *words, str(path)],
        env=_environment(toolchain, libraries),
    )
    if done.returncode:
        raise CompileError(done.stderr[-3000:], where=program.name)
    return path


def _environment(toolchain: Toolchain, libraries: Path) -> dict[str, str]:
    """What nvcc and the emitters see: nvcc on PATH, a libcuda to link against."""
    assert toolchain.nvcc is not None
    return {
        "PATH": f"{toolchain.nvcc.parent}:{os.defpath}",
        "LIBRARY_PATH": str(libraries),
        "LC_ALL": "C",
    }
