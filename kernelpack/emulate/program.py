"""Look at a host program before it is started: a CUDA runtime linked into it cannot be replaced.

Only what is needed of an ELF file is read: its section names and its dynamic symbols.
"""

import struct
from pathlib import Path

from kernelpack.emulate import fatbin
from kernelpack.errors import UnsupportedError

_HEAD = struct.Struct("<40xQ10xHHH")
_SECTION = struct.Struct("<II8x8xQQ24x")
_REGISTERS = b"\0__cudaRegisterFatBinary\0"
_LINK = "link with `-cudart shared` or `-cudart none`, against `kernelpack emulate --libraries`"


def check(path: Path) -> None:
    """Refuse a program whose CUDA runtime is part of it, or of a release with another layout.

    Raises:
        UnsupportedError: it is one; a file that is no ELF file, such as a script, is let pass.

    """
    raw = path.read_bytes()
    if raw[:5] != b"\x7fELF\x02":
        return
    sections = _sections(raw)
    symbols = sections.get(".dynstr", b"")
    if ".nv_fatbin" in sections and _REGISTERS not in symbols:
        raise UnsupportedError("the CUDA runtime is linked statically", where=str(path), hint=_LINK)
    for soname in (b"libcudart.so.11.0", b"libcudart.so.12"):
        if b"\0" + soname + b"\0" in symbols:
            raise UnsupportedError(
                f"built for {soname.decode()}; the stand-in is libcudart.so.13",
                where=str(path),
                hint="build it with CUDA 13",
            )


def images(path: Path) -> tuple[bytes, ...]:
    """The fat binaries of a program; of another file, all of it."""
    raw = path.read_bytes()
    if raw[:4] != b"\x7fELF":
        return (raw,)
    return fatbin.split(_sections(raw).get(".nv_fatbin", b""))


def _sections(raw: bytes) -> dict[str, bytes]:
    """The sections of a 64-bit little-endian ELF file, by name; empty for a damaged one."""
    try:
        start, size, count, names = _HEAD.unpack_from(raw)
        heads = [_SECTION.unpack_from(raw, start + size * index) for index in range(count)]
        _, _, strings, length = heads[names]
    except (struct.error, IndexError):
        return {}
    table = raw[strings : strings + length]
    return {
        table[name : table.find(b"\0", name)].decode(errors="replace"): raw[at : at + held]
        for name, _kind, at, held in heads
    }
