"""Compilers that compile nothing, count their calls, and fail where a source says so.

A source is known by its text. Lines in it are orders: `// registers 200` and
`// spills 8` are what the cubin will say, `// refuse` makes the front end fail, `// sleep 0.5` and
`// kill N` (its own process, the first N times) are for tests of workers.
Calls are logged as files in the folder that the toolchain names as its ptxas.
"""

import os
import re
import secrets
import signal
import time
from pathlib import Path

from kernelpack.build.make import Compilers
from kernelpack.errors import CompileError
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Cubin, Ptx, Resources, Source
from kernelpack.spec.params import Slot
from kernelpack.toolchain.toolchain import Toolchain


def toolchain(log: Path, *, digest: str = "1" * 64, ptxas_digest: str = "2" * 64) -> Toolchain:
    """A toolchain whose calls are logged in a folder."""
    log.mkdir(parents=True, exist_ok=True)
    return Toolchain(
        name="cuda-13.4",
        front_end="nvrtc",
        release="13.4",
        nvrtc_library=None,
        nvcc=None,
        ptxas=log,
        include_dirs=(),
        versions={"ptxas": "13.4.92"},
        digest=digest,
        ptxas_digest=ptxas_digest,
    )


def calls(log: Path, step: str) -> list[str]:
    """The entries that a step (`compile`, `assemble`) was called for, sorted."""
    return sorted(path.name.split(".")[1] for path in log.glob(f"{step}.*"))


def compile_source(source: Source, toolchain: Toolchain, arch: Arch) -> Ptx:
    count = calls(toolchain.ptxas, "compile").count(source.entry)
    (toolchain.ptxas / f"compile.{source.entry}.{secrets.token_hex(8)}").touch()
    time.sleep(float(_order(source.text, "sleep") or 0))
    if count < int(_order(source.text, "kill") or 0):
        os.kill(os.getpid(), signal.SIGKILL)
    if "// refuse" in source.text:
        raise CompileError("expected a `;`", where=f"{source.name}:1")
    return Ptx(text=f"// {arch}\n.entry {source.entry}\n{source.text}")


def assemble(ptx: Ptx, toolchain: Toolchain, arch: Arch) -> Cubin:
    entry = re.findall(r"\.entry (\w+)", ptx.text)[0]
    (toolchain.ptxas / f"assemble.{entry}.{secrets.token_hex(8)}").touch()
    return Cubin(
        image=ptx.text.encode(),
        target=arch.name,
        spill_store_bytes=int(_order(ptx.text, "spills") or 0),
        spill_load_bytes=0,
    )


def inspect(cubin: Cubin, entry: str) -> Resources:
    return Resources(
        entry=entry,
        target=cubin.target,
        registers=int(_order(cubin.image.decode(), "registers") or 16),
        shared_bytes=0,
        stack_bytes=0,
        spill_bytes=cubin.spill_store_bytes,
        slots=(Slot(0, 8), Slot(8, 4)),
    )


COMPILERS = Compilers(compile=compile_source, assemble=assemble, inspect=inspect)


def _order(text: str, word: str) -> str:
    found = re.search(rf"// {word} (\S+)", text)
    return found[1] if found else ""
