"""What tests compile and emulate, kept between runs in the project's own cache, by its own keys.

A key holds all that an outcome depends on: sources and compilers, or PTX, launch, case and the code
of emulator and oracle. So whoever finds an outcome here would have come to the same. A clean clone
has none, and `make clean` forgets all.
"""

import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import ml_dtypes  # noqa: F401  names its types for numpy
import numpy as np

from kernelpack.build.key import ptx_key
from kernelpack.cache.key import Key
from kernelpack.cache.store import Store
from kernelpack.kernels.definition import Arrays, Definition
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Ptx, Source, digest
from kernelpack.spec.variant import Variant
from kernelpack.toolchain.locate import find
from kernelpack.toolchain.nvrtc import compile_in_process
from kernelpack.verify.job import Job
from kernelpack.verify.key import code_of, emulator_version, job_key, oracle_version
from kernelpack.verify.outcome import Outcome
from kernelpack.verify.prove import prove
from kernelpack.verify.record import decode, encode

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "test-cache"
"""Also the cache of bundles that tests build; those about a first build have one of their own."""

STORE = Store(FOLDER)
Compile = Callable[[Source, str], Ptx]
"""`(source, target)` → PTX."""


toolchain = cache(find)
"""The default one. To find it is to look at every file of it, which takes 0.1 s."""


def compile_here(source: Source, arch: str) -> Ptx:
    """Compile in this process, which then serves one NVRTC."""
    return compile_in_process(source, toolchain(), Arch(arch))


def compiled(source: Source, arch: str, make: Compile = compile_here) -> Ptx:
    """The PTX of a source by the default toolchain; `make` compiles it where it is not kept."""
    key = ptx_key(source, toolchain(), Arch(arch))

    def text() -> bytes:
        return make(source, arch).text.encode()

    return Ptx(text=STORE.make_once(key.digest, text).decode())


def proven(job: Job, variant: Variant, ptx: str, definition: Definition) -> Outcome:
    """What comes of a run on the emulator, as `kernelpack verify` has it."""
    key = job_key(job, variant, code_of(ptx), definition.version)
    record = STORE.make_once(key.digest, lambda: encode(prove(job, variant, ptx, definition)))
    return decode(record, job)


def computed(parts: Iterable[tuple[str, str]], make: Callable[[], Arrays]) -> Arrays:
    """What an emulated run computes, which depends on these parts and on the emulator's code."""
    key = Key(parts=(*parts, ("emulator", emulator_version())))

    def written() -> bytes:
        of = {name: (a.dtype.name, a.shape, a.tobytes().hex()) for name, a in make().items()}
        return json.dumps(of).encode()

    record = json.loads(STORE.make_once(key.digest, written))
    return {
        name: np.frombuffer(bytes.fromhex(data), np.dtype(dtype)).reshape(shape)
        for name, (dtype, shape, data) in record.items()
    }


def names(parts: Iterable[tuple[str, str]], make: Callable[[], Iterable[str]]) -> frozenset[str]:
    """The names of what an emulated run breaks, which depends on these parts and on our code."""
    ours = (("emulator", emulator_version()), ("oracle", oracle_version()))
    key = Key(parts=(*parts, *ours))
    record = STORE.make_once(key.digest, lambda: json.dumps(sorted(make())).encode())
    return frozenset(json.loads(record))


@cache
def folder_digest(folder: Path, suffixes: tuple[str, ...]) -> str:
    """What the files of a folder with these suffixes say; subfolders count."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in suffixes)
    return digest("\n".join(f"{f.relative_to(folder)} {digest(f.read_bytes())}" for f in files))
