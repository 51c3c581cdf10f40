"""Variants of the NVFP4 grouped GEMMs and arrays for them on a GPU that is pretended."""

import numpy as np

from kernelpack.formats.dtype import DType
from kernelpack.kernels.registry import find
from kernelpack.load.load import load
from kernelpack.ops.arrays import DeviceArray
from kernelpack.runtime.driver import Driver
from kernelpack.spec.arch import Arch
from kernelpack.spec.expr import constant, parse
from kernelpack.spec.params import Access, Argument, PointerParam, ScalarParam
from kernelpack.spec.variant import Budget, Guard, LaunchSpec, Size, Variant
from tests.fakes.bundles import write_bundle
from tests.fakes.driver import FakeCuda, FakeDevice

SIDES = {
    "c": ("t", "n"),
    "b": ("e", "n", "k // 2"),
    "b_scales": ("e", "cdiv(n, 128)", "cdiv(k, 64)", "32", "4", "4"),
    "group_offsets": ("n_active + 1",),
    "expert_ids": ("n_active",),
    "expert_scales": ("e",),
    "a_scales": ("scale_blocks", "cdiv(k, 64)", "32", "4", "4"),
    "group_scale_offsets": ("n_active",),
}
SMALL = {
    "group_offsets": DType.U32,
    "group_scale_offsets": DType.U32,
    "expert_ids": DType.I32,
    "expert_scales": DType.FP32,
}
"""Arrays of four bytes an element; they need no more alignment."""


def variant(kernel: str, out: str = "bf16", arch: str = "sm_100a") -> Variant:
    """One variant whose parameters are its arguments, then t; tokens are bf16 without scales."""
    scaled = kernel == "nvfp4_grouped_gemm"
    sides = SIDES if scaled else dict(list(SIDES.items())[:-2])
    sizes = ("t", "n", "k", "e", "n_active", "out_dtype", *(("scale_blocks",) if scaled else ()))
    tokens = Argument(
        name="a",
        dtype=DType.U8 if scaled else DType.BF16,
        shape=(parse("t"), parse("k // 2" if scaled else "k")),
    )
    arguments = (*(_argument(name, side, out) for name, side in sides.items()), tokens)
    pointers = (PointerParam(name=a.name, argument=a.name) for a in arguments)
    return Variant(
        kernel=kernel,
        abi=2,
        arch=Arch(arch),
        axes=(("OUT", out),),
        constants=(("OUT", out),),
        template=f"{kernel}/{arch}.cu.j2",
        sizes=tuple(Size(name=name, doc=name) for name in sizes),
        arguments=arguments,
        params=(*pointers, ScalarParam(name="t", dtype=DType.U32, value=parse("t"))),
        launch=LaunchSpec(
            grid=(parse("sm_count"), constant(1), constant(1)),
            block=(constant(128), constant(1), constant(1)),
        ),
        guards=(Guard(when=parse(f"out_dtype == '{out}'"), reason=f"c must be {out}"),),
        cost=parse("t"),
        budget=Budget(registers=168, shared_bytes=232_448),
    )


def _argument(name: str, sides: tuple[str, ...], out: str) -> Argument:
    return Argument(
        name=name,
        dtype=DType.parse(out) if name == "c" else SMALL.get(name, DType.U8),
        shape=tuple(map(parse, sides)),
        access=Access.WRITE if name == "c" else Access.READ,
        align_bytes=4 if name in SMALL else 16,
    )


class GroupedBench:
    """The inputs of a case on a pretended B200, by name, and a bundle opened beside it."""

    def __init__(self, folder, kernel, **sizes):
        self.cuda = FakeCuda(devices=(FakeDevice(capability=(10, 0)),))
        variants = [variant(kernel), variant(kernel, "fp32")]
        self.cuda.signatures.update({v.entry: v.slots for v in variants})
        self.library = load(write_bundle(folder / "x.kpk", variants), driver=Driver(self.cuda))
        definition = find(kernel)
        known = {"t": "150", "n": "136", "k": "96", "e": "3"}
        self.case = definition.case(known | sizes)
        self.arrays = {n: self.upload(a) for n, a in definition.inputs(self.case).items()}
        self.parameters = [p.name for p in variants[0].params]

    def upload(self, data):
        """An array on the device that holds a copy."""
        dtype = next(kind for kind in DType if kind.numpy == data.dtype)
        address = self.cuda.new_memory(data.nbytes, 0)
        self.cuda.on_cuMemcpyHtoD(address, np.ascontiguousarray(data).ctypes.data, data.nbytes)
        return DeviceArray(pointer=address, shape=data.shape, dtype=dtype)

    def parameter(self, name):
        """A parameter of the last launch as an unsigned integer."""
        return self.cuda.launches[-1].number(self.parameters.index(name))
