"""Compile the stand-in for libcudart and libcuda with the host's g++, once for each set of headers.

The folder holds one library under the four names that programs look for. It runs in the user's
programs, and a cache may be shared: so each user has a folder, and what lies there is looked at
each time. Only the user's own files, which no other may write, are used; a damaged one is made
again.
"""

import os
import shutil
import stat
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from kernelpack import process
from kernelpack.errors import ToolchainError

SOURCES = Path(__file__).parent / "standin"
LIBRARY = "libcudart.so.13"
NAMES = ("libcudart.so", "libcuda.so.1", "libcuda.so")
COMPILER = "g++"
DIGEST = "sha256"
"""The file beside it with the library's digest."""
_FLAGS = ("-std=c++17", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror")


def build(cache: Path, include_dirs: Sequence[Path]) -> Path:
    """The folder of the stand-in's libraries.

    Args:
        cache: where it is kept.
        include_dirs: the folders of the CUDA 13 headers.

    Raises:
        ToolchainError: there is no g++, it cannot compile the stand-in, somebody else's files are
            in its place, or the cache cannot be written.

    """
    folder = cache / "standin" / f"{_digest(include_dirs)}-{os.geteuid()}"
    if not _is_sound(folder):
        with _beside(folder) as name:
            made = Path(name) / "made"
            made.mkdir()
            _compile(made, include_dirs)
            _seal(made)
            _publish(made, folder)
    return folder


def _beside(folder: Path) -> TemporaryDirectory[str]:
    """A new folder where the finished one will be."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        return TemporaryDirectory(dir=folder.parent)
    except OSError as error:
        raise ToolchainError(
            f"the stand-in cannot be kept here: {error.strerror}",
            where=str(folder.parent),
            hint="name a folder that you may write in KERNELPACK_CACHE_DIR",
        ) from error


def check(folder: Path) -> None:
    """Refuse to start a program with a stand-in that is not what was made: it would run without.

    Raises:
        ToolchainError: a file is gone, was changed, or may be changed by somebody else.

    """
    if not _is_sound(folder):
        hint = "run it again; the folder must be yours, and no other may write to it"
        raise ToolchainError("is not the stand-in that was made", where=str(folder), hint=hint)


def _is_sound(folder: Path) -> bool:
    """Whether the library is there, whole, under all its names, nobody else's, and alone."""
    library, told = folder / LIBRARY, folder / DIGEST
    try:
        held = {path.name for path in folder.iterdir()}
        links = [(folder / name).readlink() == Path(LIBRARY) for name in NAMES]
        is_own = all(map(_is_own, (folder, library, told)))
        is_all = held == {LIBRARY, DIGEST, *NAMES} and all(links)
        is_whole = told.read_text(encoding="utf-8") == sha256(library.read_bytes()).hexdigest()
    except OSError:
        return False
    return is_own and is_all and is_whole


def _is_own(path: Path) -> bool:
    """Whether a file or folder is the user's, no link, and closed to what others write."""
    found = path.lstat()
    is_closed = not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return found.st_uid == os.geteuid() and is_closed and not stat.S_ISLNK(found.st_mode)


def _seal(folder: Path) -> None:
    """Close a new folder to others, whatever the umask, and note the library's digest."""
    library, told = folder / LIBRARY, folder / DIGEST
    told.write_text(sha256(library.read_bytes()).hexdigest(), encoding="utf-8")
    for path, mode in ((library, 0o755), (told, 0o644), (folder, 0o755)):
        path.chmod(mode)


def _digest(include_dirs: Sequence[Path]) -> str:
    """The inputs of the library: its sources, the flags, and its headers."""
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
    """Give the finished folder its name, unless another process was first; a bad one goes."""
    if os.path.lexists(folder) and not _is_sound(folder):
        with suppress(OSError):  # by another process, or not ours to move
            folder.rename(made.with_name("bad"))
    with suppress(OSError):
        made.rename(folder)
    if not _is_sound(folder):
        hint = "remove it, or name another cache with KERNELPACK_CACHE_DIR"
        raise ToolchainError("is in the stand-in's place", where=str(folder), hint=hint)
