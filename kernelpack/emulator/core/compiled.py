"""The core's shared library, compiled by whatever C++ compiler there is, and kept in the cache."""

import os
import platform
import re
import shutil
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from kernelpack import process
from kernelpack.cache.alone import alone
from kernelpack.errors import ToolchainError

SOURCES = Path(__file__).parent
_UNITS = SOURCES / "units"
_FLAGS = (
    *("-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing"),
)
_INCLUDE = re.compile(r'#include "([^"]+)"')
_JOBS = 2
_COMPILERS = ("c++", "g++", "clang++")


def compiler() -> tuple[str, ...]:
    """The words that start a C++ compiler: the system's, else that of the package `ziglang`.

    Raises:
        ToolchainError: there is none.

    """
    for name in _COMPILERS:
        found = shutil.which(name)
        if found:
            return (found, "-march=native")
    if find_spec("ziglang"):
        return (sys.executable, "-m", "ziglang", "c++", *_zig_processor())
    raise ToolchainError(
        "there is no C++ compiler", hint="install one (apt install g++), or `pip install ziglang`"
    )


def _zig_processor() -> tuple[str, ...]:
    """A level that the processor has: of `native`, zig 0.17.1 makes its compiler crash on some."""
    return ("-mcpu=x86_64_v3",) if "avx2" in _processor().split() else ()


def is_kept(cache: Path) -> bool:
    """Whether the library is in a cache, so that nothing need be compiled.

    Raises:
        ToolchainError: there is no compiler.

    """
    found = _place(cache, compiler())
    return _is_own(found.parent) and _is_own(found)


def _place(cache: Path, words: tuple[str, ...]) -> Path:
    return cache / "emulator" / f"{_digest(words)}-{os.geteuid()}" / "core.so"


def library(cache: Path) -> Path:
    """The library, made now if it is not in the cache.

    Args:
        cache: the folder under which it is kept.

    Raises:
        ToolchainError: there is no compiler, it fails, or the cache cannot be written.

    """
    words = compiler()
    found = _place(cache, words)
    folder = found.parent
    if is_kept(cache):
        return found
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        with alone(folder), TemporaryDirectory(dir=folder) as room:
            if not _is_own(found):
                _link(words, _objects(words, folder.parent), Path(room) / found.name).replace(found)
    except OSError as error:
        what = f"the compiled engine cannot be kept here: {error.strerror}"
        raise ToolchainError(
            what, where=str(folder), hint="XDG_CACHE_HOME names another folder for users' caches"
        ) from error
    return found


def _objects(words: tuple[str, ...], folder: Path) -> list[Path]:
    """An object for each unit, made now where it is not kept; two compilers run at a time."""
    with ThreadPoolExecutor(_JOBS) as pool:
        made = pool.map(lambda unit: _object(words, unit, folder), sorted(_UNITS.iterdir()))
        try:
            return list(made)
        except (KeyboardInterrupt, SystemExit):
            pool.shutdown(wait=False, cancel_futures=True)
            process.end_running()
            raise


def _object(words: tuple[str, ...], unit: Path, folder: Path) -> Path:
    found = folder / f"{unit.stem}-{_digest(words, unit)}-{os.geteuid()}.o"
    if not _is_own(found):
        with TemporaryDirectory(dir=folder) as room:
            made = Path(room) / found.name
            run_compiler([*words, *_FLAGS, "-c", str(unit), "-o", str(made)], Path(room))
            made.chmod(0o644)
            made.replace(found)
    return found


def _link(words: tuple[str, ...], objects: list[Path], library: Path) -> Path:
    command = [*words, *_FLAGS, "-shared", *map(str, objects), "-o", str(library)]
    run_compiler(command, library.parent)
    library.chmod(0o755)
    return library


def run_compiler(command: list[str], room: Path) -> None:
    """Run a compiler. Zig keeps what it makes in folders that these name; others ignore them."""
    kept = {"ZIG_GLOBAL_CACHE_DIR": str(room), "ZIG_LOCAL_CACHE_DIR": str(room)}
    done = process.run(command, env={**process.ENVIRONMENT, **kept})
    if done.returncode:
        raise ToolchainError(f"the compiled engine does not compile: {done.stderr[-2000:]}")


def _is_own(path: Path) -> bool:
    """Whether it is there, the user's, and closed to what others write."""
    try:
        found = path.lstat()
    except OSError:
        return False
    is_closed = not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return found.st_uid == os.geteuid() and is_closed and not stat.S_ISLNK(found.st_mode)


def _digest(words: tuple[str, ...], unit: Path | None = None) -> str:
    """What the library, or one unit, depends on: sources, compiler, flags, and the processor."""
    told = sha256(repr((words, _FLAGS, platform.machine(), _processor())).encode())
    for path in sorted(SOURCES.rglob("*.hpp")) + (_sources(unit) if unit else _all_sources()):
        told.update(path.relative_to(SOURCES).as_posix().encode() + b"\0" + path.read_bytes())
    return told.hexdigest()[:16]


def _all_sources() -> list[Path]:
    return [source for unit in sorted(_UNITS.iterdir()) for source in _sources(unit)]


def _sources(unit: Path) -> list[Path]:
    """A unit and the files that it includes."""
    named = _INCLUDE.findall(unit.read_text(encoding="utf-8"))
    return [unit, *((unit.parent / name).resolve() for name in named)]


def _processor() -> str:
    """What tells one processor from another: `-march=native` differs by it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")
