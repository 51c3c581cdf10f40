"""Compile the stand-in for libcudart and libcuda with the host's g++, once for each set of headers.

The folder holds one library under the four names that programs look for.
"""

import os
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from kernelpack import process
from kernelpack.errors import ToolchainError

SOURCES = Path(__file__).parent / "standin"
LIBRARY = "libcudart.so.13"
NAMES = ("libcudart.so", "libcuda.so.1", "libcuda.so")
COMPILER = "g++"
_FLAGS = ("-std=c++17", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror")


def build(cache: Path, include_dirs: Sequence[Path]) -> Path:
    """The folder of the stand-in's libraries.

    Args:
        cache: where it is kept.
        include_dirs: the folders of the CUDA 13 headers.

    Raises:
        ToolchainError: there is no g++, or it cannot compile the stand-in.

    """
    folder = cache / "standin" / _digest(include_dirs)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent) as name:
            made = Path(name) / "made"
            made.mkdir()
            _compile(made, include_dirs)
            _publish(made, folder)
    return folder


def _digest(include_dirs: Sequence[Path]) -> str:
    """What the library depends on: its sources, the flags, and the headers it is built with."""
    told = sha256(repr(_FLAGS).encode())
    headers = [path / "cuda.h" for path in include_dirs] + [
        path / "driver_types.h" for path in include_dirs
    ]
    for path in (*sorted(SOURCES.iterdir()), *(h for h in headers if h.is_file())):
        told.update(path.name.encode() + b"\0" + path.read_bytes())
    return told.hexdigest()[:16]


def _compile(folder: Path, include_dirs: Sequence[Path]) -> None:
    compiler = shutil.which(COMPILER)
    if compiler is None:
        raise ToolchainError(
            f"the stand-in for the CUDA runtime needs a host {COMPILER}, and none is on PATH",
            hint="install one (apt install g++)",
        )
    done = process.run(
        [
            compiler,
            *_FLAGS,
            *(f"-I{path}" for path in include_dirs),
            *map(str, sorted(SOURCES.glob("*.cpp"))),
            f"-Wl,--version-script={SOURCES / 'exports.map'}",
            f"-Wl,-soname,{LIBRARY}",
            "-ldl",
            "-o",
            str(folder / LIBRARY),
        ]
    )
    if done.returncode:
        raise ToolchainError(f"the stand-in does not compile: {done.stderr[-2000:]}")
    for name in NAMES:
        (folder / name).symlink_to(LIBRARY)


def _publish(made: Path, folder: Path) -> None:
    """Give the finished folder its name, unless another process was first."""
    try:
        os.rename(made, folder)  # noqa: PTH104 - Path.rename says the same less plainly
    except OSError:
        if not folder.is_dir():
            raise
