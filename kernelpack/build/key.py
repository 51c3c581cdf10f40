"""What an output depends on: named parts, and one digest over them.

A key is made of content alone: the rendered source, the headers it reaches, the compilers' bytes,
the flags, the target, and kernelpack's own code that drives the compilers. No modification time
and no absolute path takes part, so a key means the same on every machine.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import kernelpack
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Ptx, Source, digest
from kernelpack.toolchain.flags import FRONT_END_FLAGS, PTXAS_FLAGS, front_end_arch, ptxas_arch
from kernelpack.toolchain.nvcc import host_version
from kernelpack.toolchain.toolchain import Toolchain


@dataclass(frozen=True, kw_only=True)
class Key:
    """The parts, by a name that people read, and the digest of all of them."""

    parts: tuple[tuple[str, str], ...]

    @cached_property
    def digest(self) -> str:
        """SHA-256 over names and values; the name of the output in the cache."""
        return digest(json.dumps(self.parts))


def ptx_key(source: Source, toolchain: Toolchain, arch: Arch) -> Key:
    """What a variant's PTX depends on."""
    flags = (front_end_arch(arch), *FRONT_END_FLAGS[toolchain.front_end])
    headers = ((f"header {header.path}", digest(header.text)) for header in source.headers)
    return Key(
        parts=(
            (f"source {source.name}", digest(source.text)),
            ("entry", source.entry),
            *headers,
            ("front end", f"{toolchain} {toolchain.digest}"),
            ("front end's flags", " ".join(flags)),
            *_host(toolchain),
            ("kernelpack's front ends", code_digest("toolchain", "process.py")),
        )
    )


def _host(toolchain: Toolchain) -> Iterable[tuple[str, str]]:
    """The compiler that nvcc works with, which is no part of the toolchain."""
    if toolchain.front_end == "nvcc":
        yield "host compiler", host_version()


def cubin_key(ptx: Ptx, toolchain: Toolchain, arch: Arch) -> Key:
    """What a variant's machine code depends on, given its PTX."""
    return Key(parts=(("ptx", ptx.digest), *_assembly(toolchain, arch)))


def variant_key(source: Source, toolchain: Toolchain, arch: Arch) -> Key:
    """All that a variant's machine code depends on; known before anything is compiled."""
    return Key(parts=(*ptx_key(source, toolchain, arch).parts, *_assembly(toolchain, arch)))


def _assembly(toolchain: Toolchain, arch: Arch) -> Iterable[tuple[str, str]]:
    yield "assembler", f"CUDA {toolchain.release} {toolchain.ptxas_digest}"
    yield "assembler's flags", " ".join((*ptxas_arch(arch), *PTXAS_FLAGS))
    yield "kernelpack's assembler", code_digest("toolchain", "process.py", *_RECORD)


@lru_cache
def code_digest(*parts: str) -> str:
    """SHA-256 over kernelpack's own folders or files, such as `toolchain`; all if none is named.

    What a step does is part of what its output depends on: another version of kernelpack must
    never be served what an older one made in another way.
    """
    root = Path(kernelpack.__file__).parent
    tops = [root / part for part in parts] or [root]
    files = sorted(f for top in tops for f in [top, *top.rglob("*")] if f.suffix in _CODE)
    return digest("\n".join(f"{f.relative_to(root)} {digest(f.read_bytes())}" for f in files))


_CODE = {".py", ".toml", ".yaml"}
_RECORD = ("build/record.py", "spec/artifact.py", "spec/params.py")
"""What decides the bytes that the cache keeps of a cubin."""
