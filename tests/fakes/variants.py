"""Variants to test with: the shape of LoRA shrink's, made by hand, with no kernel behind them."""

from kernelpack.formats.dtype import DType
from kernelpack.spec.arch import Arch
from kernelpack.spec.expr import constant, parse
from kernelpack.spec.number import REALS
from kernelpack.spec.params import (
    Access,
    Argument,
    MapParam,
    NumberParam,
    PointerParam,
    ScalarParam,
)
from kernelpack.spec.tensormap import Element, Swizzle, TensorMapSpec
from kernelpack.spec.variant import Budget, Guard, LaunchSpec, Number, Size, Variant

SIZES = ("m", "n", "k", "g", "n_active", "a_dtype", "out_dtype")


def variant(
    *,
    arch: str = "sm_90a",
    dtype: str = "bf16",
    out: str = "bf16",
    tile: int = 64,
    abi: int = 2,
    kernel: str = "lora_shrink_qkv",
    cluster: str = "2",
    shared_bytes: str = "100_000",
    numbers: tuple[Number, ...] = (),
) -> Variant:
    """One variant of LoRA shrink: it serves k % 8 == 0 and its own data types.

    Of its numbers, if it has any, it takes each in every type of numbers.
    """
    kind = DType.parse(dtype)
    return Variant(
        kernel=kernel,
        abi=abi,
        arch=Arch(arch),
        axes=(("DTYPE", dtype), ("OUT", out), ("TILE", tile)),
        constants=(("DTYPE", dtype), ("OUT", out), ("TILE", tile)),
        template=f"{kernel}/{arch}.cu.j2",
        sizes=tuple(Size(name=name, doc=name) for name in SIZES),
        numbers=numbers,
        arguments=_arguments(kind, DType.parse(out)),
        params=(*_params(Element[kind.name]), *_taking(numbers)),
        launch=LaunchSpec(
            grid=(parse(f"2 * (cdiv(m, {tile}) + n_active)"), constant(1), constant(1)),
            block=(constant(128), constant(1), constant(1)),
            cluster=(parse(cluster), constant(1), constant(1)),
            shared_bytes=parse(shared_bytes),
            programmatic=True,
        ),
        guards=(
            Guard(when=parse("k % 8 == 0"), reason="k must be a multiple of 8"),
            Guard(when=parse(f"a_dtype == '{dtype}'"), reason=f"a and b must be {dtype}"),
            Guard(when=parse(f"out_dtype == '{out}'"), reason=f"c must be {out}"),
        ),
        cost=parse(f"cdiv(m, {tile}) * {tile}"),
        budget=Budget(registers=168, shared_bytes=232_448),
    )


NUMBERS = (
    Number(name="eps", doc="what is added"),
    Number(name="alpha", doc="a factor", default=0.1),
)


def _taking(numbers: tuple[Number, ...]) -> tuple[NumberParam, ...]:
    return tuple(
        NumberParam(name=f"{number.name}_{dtype.label}", dtype=dtype, number=number.name)
        for number in numbers
        for dtype in REALS
    )


def _arguments(dtype: DType, out: DType) -> tuple[Argument, ...]:
    def shape(*sides: str):
        return tuple(parse(side) for side in sides)

    return (
        Argument(name="c", dtype=out, shape=shape("3", "m", "n"), access=Access.WRITE),
        Argument(name="a", dtype=dtype, shape=shape("m", "k")),
        Argument(name="b", dtype=dtype, shape=shape("g", "3 * n", "k")),
        Argument(name="a_offsets", dtype=DType.U32, shape=shape("n_active + 1"), align_bytes=4),
        Argument(name="expert_ids", dtype=DType.I32, shape=shape("n_active"), align_bytes=4),
    )


def _params(element: Element):
    a_map = TensorMapSpec(
        name="a_map",
        argument="a",
        element=element,
        dims=(parse("k"), parse("m")),
        strides_bytes=(parse("2 * k"),),
        box=(constant(64), constant(64)),
        swizzle=Swizzle.B128,
    )
    return (
        MapParam(name="a_map", map=a_map),
        PointerParam(name="c", argument="c"),
        PointerParam(name="b", argument="b"),
        PointerParam(name="a_offsets", argument="a_offsets"),
        PointerParam(name="expert_ids", argument="expert_ids"),
        ScalarParam(name="m", dtype=DType.U32, value=parse("m")),
        ScalarParam(name="k", dtype=DType.U32, value=parse("k")),
    )
