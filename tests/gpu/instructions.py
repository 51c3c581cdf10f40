"""The instruction tables of the emulator as machine code: `python -m tests.gpu.instructions DIR`.

Each instruction becomes one cubin, named after its PTX, with operands of its own: edges and random
numbers. Instructions that the target does not have are left out.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from zlib import crc32

import numpy as np

from kernelpack.errors import CompileError
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Ptx
from kernelpack.toolchain import locate
from kernelpack.toolchain.ptxas import assemble
from tests.emulator.semantics.bench import LANES, NUMPY, Case, program
from tests.emulator.semantics.test_coverage import TABLES
from tests.gpu.sparse_mma import all_sparse

TARGET = "sm_90a"
_FLOATS = ("f16", "bf16", "f32", "f64")
_EDGES = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 65504.0, 2.0**-14)
_WORDS = (0, 1, -1, 31, 32, 33)
ENTRY = "one"
"""The entry of every module."""


class Module(Protocol):
    """PTX of one entry."""

    @property
    def ptx(self) -> Ptx:
        """The module for the target."""

    def cubin(self, folder: Path) -> Path:
        """Where its machine code lies."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction of the tables with operands for each lane."""

    case: Case

    def __str__(self) -> str:
        return self.case.text

    @property
    def operands(self) -> list[np.ndarray]:
        """What the kernel is given, one array an operand."""
        return [np.asarray(values) for _, values in self.case.operands.values()]

    @property
    def ptx(self) -> Ptx:
        """The module for the target."""
        return Ptx(text=program(self.case).replace("sm_100a", TARGET))

    def cubin(self, folder: Path) -> Path:
        """Where its machine code lies."""
        return folder / f"{self.ptx.digest[:16]}.cubin"


def instructions() -> list[Instruction]:
    """Every instruction of the tables once, those that look at the machine left out."""
    cases = [parameter.values[0] for table in TABLES for parameter in table.CASES]
    once = {(c.text, c.result, *(kind for kind, _ in c.operands.values())): c for c in cases}
    plain = [c for c in once.values() if c.operands and ".shared" not in c.text]
    return [Instruction(_with_operands(c)) for c in plain if "%tid" not in c.text]


def _with_operands(case: Case) -> Case:
    rng = np.random.default_rng(crc32(case.text.encode()))
    given = {name: (kind, _values(kind, rng)) for name, (kind, _) in case.operands.items()}
    return Case(case.text, case.result, [], given)


def _values(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Edges of a type and random numbers, shuffled."""
    dtype = NUMPY[kind]
    if kind == "pred":
        return rng.integers(0, 2, LANES).astype(dtype)
    bits = np.dtype(f"u{dtype.itemsize}")
    if kind in _FLOATS:
        subnormal = rng.integers(1, 8, 4).astype(bits).view(dtype)
        normal = (4 * rng.standard_normal(LANES - 4 - len(_EDGES))).astype(dtype)
        return rng.permutation(np.concatenate([np.array(_EDGES).astype(dtype), subnormal, normal]))
    top = 1 << (8 * dtype.itemsize - 1)
    edges = np.array([word % (2 * top) for word in (*_WORDS, top, top - 1)], np.uint64).astype(bits)
    others = rng.integers(0, 2 * top - 1, LANES - len(edges), np.uint64, endpoint=True).astype(bits)
    return rng.permutation(np.concatenate([edges, others])).view(dtype)


def build(folder: Path) -> None:
    """Assemble every instruction that the target has."""
    assembled(instructions(), folder)


def assembled(modules: Iterable[Module], folder: Path) -> None:
    """Assemble modules; those with an instruction that the target does not have are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    toolchain, target = locate.find(), Arch(TARGET)
    for module in modules:
        try:
            image = assemble(module.ptx, toolchain, target).image
        except CompileError:
            continue
        module.cubin(folder).write_bytes(image)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
    assembled(all_sparse(), Path(sys.argv[1]))
