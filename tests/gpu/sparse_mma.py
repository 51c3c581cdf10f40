"""Every form and selector of mma.sp as machine code, beside that of `tests.gpu.instructions`."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelpack.emulator.models import mma, mma_sparse
from kernelpack.emulator.models.fragments import a_fragment, b_fragment, d_fragment
from kernelpack.emulator.models.mma_sparse import Metadata
from kernelpack.emulator.models.mma_sync import MmaSyncShape, Registers
from kernelpack.formats.dtype import DType
from kernelpack.spec.artifact import Ptx
from tests.emulator.models.test_mma_sparse import SHAPES, metadata, sparse
from tests.emulator.models.test_mma_sync import codes

_ELEMENTS = "DABC"


@dataclass(frozen=True, slots=True)
class Sparse:
    """One form with one selector, on small numbers that no sum rounds."""

    shape: MmaSyncShape
    selector: int

    def __str__(self) -> str:
        types = ".".join(t.label for t in (self.shape.d, self.shape.a, self.shape.b, self.shape.c))
        return f"m16n8k{self.shape.k} {types} selector {self.selector}"

    @property
    def ptx(self) -> Ptx:
        """A module whose entry loads a lane's registers, multiplies, and stores them."""
        return Ptx(text=_module(self.shape, self.selector))

    def cubin(self, folder: Path) -> Path:
        """Where its machine code lies."""
        return folder / f"{self.ptx.digest[:16]}.cubin"

    def registers(self) -> list[Registers]:
        """A, B, C and the metadata of all lanes: (registers, 32) of 32 bits each."""
        shape = self.shape
        _, packed, bits = sparse(shape, 1)
        noise = np.random.default_rng(4).integers(0, 2**32, 32, np.uint32)
        return [
            a_fragment(16, shape.k // 2, shape.a.bits).registers(packed),
            b_fragment(shape.k, shape.b.bits).registers(codes(shape.b, (8, shape.k), 2)),
            d_fragment(16, 8, shape.d.bits).registers(codes(shape.d, (16, 8), 3)),
            metadata(shape, bits, self.selector, noise)[None],
        ]

    def emulated(self) -> Registers:
        """What the emulator says D is."""
        a, b, c, words = self.registers()
        told = Metadata(words[0], self.selector, ordered=True)
        return mma_sparse.multiply(self.shape, a, b, c, told, mma.fast)[0]


def all_sparse() -> list[Sparse]:
    """Each form with each selector."""
    return [Sparse(shape, each) for shape in SHAPES for each in range(mma_sparse.selectors(shape))]


def _module(shape: MmaSyncShape, selector: int) -> str:
    counts = {
        "D": 4 * shape.d.bits // 32,
        "A": 16 * shape.k // 2 * shape.a.bits // 1024,
        "B": 8 * shape.k * shape.b.bits // 1024,
        "C": 4 * shape.d.bits // 32,
        "E": 1,
    }
    kinds = {"A": "b32", "B": "b32", "E": "b32"} | dict.fromkeys("DC", _kind(shape.d))
    types = ".".join(_NAMES.get(t.label, t.label) for t in (shape.d, shape.a, shape.b, shape.c))
    lists = {at: ", ".join(f"%{at}{i}" for i in range(counts[at])) for at in counts}
    loads = (_moved("ld", at, i, kinds[at]) for at in "ABCE" for i in range(counts[at]))
    stores = (_moved("st", "D", i, kinds["D"]) for i in range(counts["D"]))
    return "\n".join(
        [
            ".version 8.8 .target sm_90a .address_size 64",
            f".visible .entry one({', '.join(f'.param .u64 p{at}' for at in 'DABCE')}) {{",
            ".reg .u32 %lane; .reg .u64 %at, %all; mov.u32 %lane, %laneid;",
            *(f".reg .{kinds[at]} %{at}<{counts[at]}>;" for at in counts),
            *loads,
            f"mma.sp::ordered_metadata.sync.aligned.m16n8k{shape.k}.row.col.{types} "
            + ", ".join(f"{{{lists[at]}}}" for at in _ELEMENTS)
            + f", %E0, {selector};",
            *stores,
            "ret; }",
        ]
    )


_NAMES = {"fp16": "f16", "fp32": "f32", "i8": "s8", "i32": "s32"}


def _kind(dtype: DType) -> str:
    return "f32" if dtype is DType.FP32 else "b32"


def _moved(way: str, at: str, index: int, kind: str) -> str:
    """A load or store of one register: those of one number lie side by side over the lanes."""
    place = f"ld.param.u64 %all, [p{at}]; mad.wide.u32 %at, %lane, 4, %all;"
    register, memory = f"%{at}{index}", f"[%at+{128 * index}]"
    operands = f"{register}, {memory}" if way == "ld" else f"{memory}, {register}"
    return f"{place} {way}.global.{kind} {operands};"
