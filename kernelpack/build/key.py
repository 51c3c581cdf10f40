"""The inputs of compiled code.

The rendered source, the headers it reaches, the compilers' bytes, the flags, the target, and
kernelpack's own code that drives the compilers.
"""

from collections.abc import Iterable

from kernelpack.cache.key import Key, code_digest
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Ptx, Source, digest
from kernelpack.toolchain.flags import FRONT_END_FLAGS, PTXAS_FLAGS, front_end_arch, ptxas_arch
from kernelpack.toolchain.nvcc import host_version
from kernelpack.toolchain.toolchain import Toolchain


def ptx_key(source: Source, toolchain: Toolchain, arch: Arch) -> Key:
    """The inputs of a variant's PTX."""
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
    """The compiler that nvcc works with, which is not part of the toolchain."""
    if toolchain.front_end == "nvcc":
        yield "host compiler", host_version()


def cubin_key(ptx: Ptx, toolchain: Toolchain, arch: Arch) -> Key:
    """The inputs of a variant's machine code, given its PTX."""
    return Key(parts=(("ptx", ptx.digest), *_assembly(toolchain, arch)))


def variant_key(source: Source, toolchain: Toolchain, arch: Arch) -> Key:
    """All that a variant's machine code depends on; known before anything is compiled."""
    return Key(parts=(*ptx_key(source, toolchain, arch).parts, *_assembly(toolchain, arch)))


def _assembly(toolchain: Toolchain, arch: Arch) -> Iterable[tuple[str, str]]:
    yield "assembler", f"CUDA {toolchain.release} {toolchain.ptxas_digest}"
    yield "assembler's flags", " ".join((*ptxas_arch(arch), *PTXAS_FLAGS))
    yield "kernelpack's assembler", code_digest("toolchain", "process.py", *_RECORD)


_RECORD = ("build/record.py", "spec/artifact.py", "spec/params.py")
"""The inputs of a cubin's bytes in the cache."""
