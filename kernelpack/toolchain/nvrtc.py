"""Source to PTX by the NVRTC library, called by ctypes in the process that asks.

One process serves one NVRTC: the libraries of CUDA 12 and 13 export the same names and load
their own builtins, so a second one is refused. The build calls this in its worker processes.
"""

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from kernelpack.errors import CompileError, ToolchainError
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Ptx, Source
from kernelpack.toolchain.flags import FRONT_END_FLAGS, front_end_arch
from kernelpack.toolchain.lines import Paths, messages, paths_of, refusal
from kernelpack.toolchain.normalise import normalise
from kernelpack.toolchain.toolchain import Toolchain

COMPILATION = 6
"""NVRTC_ERROR_COMPILATION: the source is at fault, the log says how."""

_served: list[Path] = []


def compile_in_process(source: Source, toolchain: Toolchain, arch: Arch) -> Ptx:
    """Compile with the toolchain's NVRTC, in this process.

    Raises:
        CompileError: the source has errors or warnings; at the first one's line.
        ToolchainError: the library is missing, of another release, or a second one.

    """
    assert toolchain.nvrtc_library is not None
    library = _load(toolchain.nvrtc_library, toolchain.release)
    # NVRTC makes a relative name absolute with the folder it runs in.
    paths = paths_of(source, {Path.cwd(), Path.cwd().resolve()}, toolchain.include_dirs)
    program = _program(library, source)
    try:
        _compile(library, program, _options(toolchain, arch), paths, source.variant_id)
        return Ptx(text=normalise(_text(library, program, "PTX"), paths))
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _options(toolchain: Toolchain, arch: Arch) -> list[bytes]:
    include = [f"-I{path}" for path in toolchain.include_dirs]
    return [word.encode() for word in (*FRONT_END_FLAGS["nvrtc"], front_end_arch(arch), *include)]


@lru_cache
def _load(path: Path, release: str) -> ctypes.CDLL:
    """The library, once a process; it must say the release that its wheel says."""
    if _served and _served[0] != path:
        raise ToolchainError(
            f"this process already serves {_served[0]}",
            where=str(path),
            hint="compile with one toolchain a process",
        )
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ToolchainError(f"cannot be loaded: {error}", where=str(path)) from error
    _served.append(path)
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    if release != f"{major.value}.{minor.value}":
        raise ToolchainError(
            f"the library is NVRTC {major.value}.{minor.value}, not {release}", where=str(path)
        )
    return library


def _program(library: ctypes.CDLL, source: Source) -> ctypes.c_void_p:
    program = ctypes.c_void_p()
    headers = source.headers
    status = library.nvrtcCreateProgram(
        ctypes.byref(program),
        source.text.encode(),
        source.name.encode(),
        len(headers),
        _strings([header.text.encode() for header in headers]),
        _strings([header.path.encode() for header in headers]),
    )
    _require(status, "nvrtcCreateProgram", source.variant_id)
    return program


def _strings(items: Sequence[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(items))(*items)


def _compile(
    library: ctypes.CDLL,
    program: ctypes.c_void_p,
    options: Sequence[bytes],
    paths: Paths,
    variant_id: str,
) -> None:
    status = library.nvrtcCompileProgram(program, len(options), _strings(options))
    log = _text(library, program, "ProgramLog")
    if found := list(messages(log, paths)):
        raise refusal(found, variant_id)
    if status == COMPILATION:
        raise CompileError(log.strip() or "NVRTC does not say why", where=variant_id)
    _require(status, "nvrtcCompileProgram", variant_id)


def _text(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> str:
    """The program's `PTX` or `ProgramLog`."""
    size = ctypes.c_size_t()
    _require(getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)), what, "NVRTC")
    text = ctypes.create_string_buffer(size.value)
    _require(getattr(library, f"nvrtcGet{what}")(program, text), what, "NVRTC")
    return text.value.decode(errors="backslashreplace")


def _require(status: int, call: str, where: str) -> None:
    if status:
        raise ToolchainError(f"NVRTC answered {status} to {call}", where=where)
