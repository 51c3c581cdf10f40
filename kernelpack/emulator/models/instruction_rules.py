"""The rules of tcgen05.mma: the shapes, types and layouts of each kind.

Each rule is one small function that yields what it finds; `lint` runs them all.
Sources: PTX ISA 9.1, 9.7.16.2.1 (table 39), 9.7.16.10.1-3 and .7.1-3; the wider N steps with A in
tensor memory are what CUTLASS's MMA traits assert.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kernelpack.emulator import rules
from kernelpack.emulator.models.fault import Misuse, misuse
from kernelpack.emulator.models.instruction_descriptor import Kind, MmaShape
from kernelpack.emulator.models.mma_descriptor import SharedDescriptor
from kernelpack.formats.dtype import DType
from kernelpack.spec.tensormap import Swizzle

_SHAPES = "9.7.16.2.1"
_TRANSPOSE = "9.7.16.10.1"
_SCALES = "9.7.16.10.7.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """How an instruction is issued: its qualifiers, and where A is.

    `blocks` is the number of scale factors a row, 0 without block scaling.
    """

    cta_group: int = 1
    ws: bool = False
    a_in_tensor_memory: bool = False
    blocks: int = 0


def lint(shape: MmaShape, use: Use) -> tuple[Misuse, ...]:
    """Every rule that an instruction descriptor breaks in this use."""
    rules = (_m, _n, _narrow_n, _reserved, _types, _transposed, _scaled)
    return tuple(found for rule in rules for found in rule(shape, use))


def lint_operand(
    shape: MmaShape, descriptor: SharedDescriptor, *, mn_major: bool
) -> tuple[Misuse, ...]:
    """Whether the swizzle of a shared-memory operand allows its major-ness."""
    if not mn_major:
        return ()
    atoms = descriptor.swizzle is Swizzle.B128_ATOM32
    if (shape.kind is Kind.TF32) == atoms:
        return ()
    text = "a transposed operand needs the 128B swizzle with 32-byte atoms for tf32, and no other"
    return (misuse(rules.INSTRUCTION_TRANSPOSE_SWIZZLE, text),)


def halves_scales(shape: MmaShape, use: Use) -> bool:
    """Whether quadrants 0-1 hold one half of B's scales and 2-3 the other: a pair with M = 128."""
    return use.cta_group == 2 and shape.m == 128


def lint_scales(shape: MmaShape, use: Use, columns: tuple[int, int]) -> tuple[Misuse, ...]:
    """Whether the scales of A and of B begin at columns of tensor memory that an MMA can read.

    B's at an even one: an MMA reads pairs of columns, 64 rows, also where N is less, and an odd
    address is a misaligned one. (Allocations are even too, so that the pair's other column is
    there.) The manual has it only in its pictures; Triton pads B's scales to two columns, CUTLASS
    moves along them by two, and whoever tried an odd one on a GPU reports `misaligned address`.
    Of halves nothing is known. A's columns begin at a multiple of their number in every kernel
    known.
    """
    of_a, of_b = columns
    step = shape.m // use.cta_group // 32
    found = []
    if of_b % 2 and not halves_scales(shape, use):
        text = f"scales of B at column {of_b} of tensor memory, an odd one (N = {shape.n})"
        found.append(misuse(rules.SCALE_COLUMN_OF_B, text))
    if of_a % step:
        text = f"scales of A at column {of_a} of tensor memory, not a multiple of {step}"
        found.append(misuse(rules.SCALE_COLUMN_OF_A, text))
    return tuple(found)


def _m(shape: MmaShape, use: Use) -> Iterator[Misuse]:
    allowed: tuple[int, ...] = {1: (64, 128), 2: (128, 256)}[use.cta_group]
    if use.ws:
        allowed = (32, 64, 128)
    elif shape.kind.is_block_scaled and use.cta_group == 1:
        allowed = (128,)
    if shape.m not in allowed:
        text = f"M = {shape.m} of {_name(shape, use)}; allowed: {allowed}"
        yield misuse(rules.INSTRUCTION_M, text)
    if use.ws and (use.cta_group == 2 or shape.kind.is_block_scaled):
        yield misuse(rules.INSTRUCTION_WS, f"{_name(shape, use)} does not exist")


def _n(shape: MmaShape, use: Use) -> Iterator[Misuse]:
    allowed = set(range(8 * use.cta_group, 257, 8 * use.cta_group))
    if use.ws:
        allowed = {64, 128, 256}
    elif shape.kind is Kind.I8:
        step = 16 * use.cta_group
        allowed = set(range(step, 257, step)) | ({8, 24} if use.cta_group == 1 else set())
    if shape.n not in allowed:
        text = f"N = {shape.n} is not a shape of {_name(shape, use)}"
        yield misuse(rules.INSTRUCTION_N, text)


def _narrow_n(shape: MmaShape, use: Use) -> Iterator[Misuse]:
    step = 16 * use.cta_group
    wide_rows = use.cta_group == 2 or shape.m == 128
    if use.a_in_tensor_memory and wide_rows and shape.n % step:
        text = f"N = {shape.n} with A in tensor memory; known kernels use multiples of {step}"
        yield misuse(rules.INSTRUCTION_NARROW_N, text)


def _reserved(shape: MmaShape, _use: Use) -> Iterator[Misuse]:
    if shape.reserved:
        text = f"reserved bits {shape.reserved:#010x} of the instruction descriptor are set"
        yield misuse(rules.INSTRUCTION_RESERVED, text)


def _types(shape: MmaShape, use: Use) -> Iterator[Misuse]:
    kind, is_integer = shape.kind, shape.kind is Kind.I8
    half_output = shape.d is DType.FP16 and kind is Kind.F16
    if half_output and DType.BF16 in (shape.a, shape.b):
        yield misuse(rules.INSTRUCTION_TYPE, "bf16 operands need an fp32 accumulator")
    if kind is Kind.F16 and shape.a is not shape.b:
        text = "kind::f16 multiplies fp16 by fp16 or bf16 by bf16"
        yield misuse(rules.INSTRUCTION_TYPE_MIXED, text)
    if is_integer and (shape.negate_a or shape.negate_b):
        yield misuse(rules.INSTRUCTION_NEGATE, "kind::i8 cannot negate its operands")
    if shape.saturate and not is_integer:
        yield misuse(rules.INSTRUCTION_SATURATE, "only kind::i8 saturates")
    if shape.max_shift and not use.ws:
        yield misuse(rules.INSTRUCTION_RESERVED, "the maximum shift is a field of .ws only")


def _transposed(shape: MmaShape, use: Use) -> Iterator[Misuse]:
    sides = ((shape.a, shape.a_mn_major), (shape.b, shape.b_mn_major))
    for matrix, (dtype, mn_major) in zip("AB", sides, strict=True):
        if mn_major and dtype.bits < 8:
            text = f"matrix {matrix} of {dtype.label} cannot be transposed"
            yield misuse(rules.INSTRUCTION_TRANSPOSE_TYPE, text)
    step = 16 * use.cta_group
    if shape.b_mn_major and shape.b.bits == 8 and shape.n % step:
        text = f"N = {shape.n} of a transposed 8-bit B must be a multiple of {step}"
        yield misuse(rules.INSTRUCTION_TRANSPOSE, text)


def _scaled(shape: MmaShape, use: Use) -> Iterator[Misuse]:
    kind = shape.kind
    if not kind.is_block_scaled:
        return
    allowed = {
        (Kind.MXF8F6F4, DType.UE8M0): (1,),
        (Kind.MXF4, DType.UE8M0): (2,),
        (Kind.MXF4NVF4, DType.UE8M0): (2, 4),
        (Kind.MXF4NVF4, DType.UE4M3): (4,),
    }.get((kind, shape.scale or DType.UE8M0), ())
    if use.blocks not in allowed:
        scale = shape.scale.label if shape.scale else "no"
        text = f"scale_vec::{use.blocks}X of {scale} scales is not a form of kind::{kind}"
        yield misuse(rules.INSTRUCTION_SCALE, text)
    for matrix, byte in (("A", shape.sfa_id), ("B", shape.sfb_id)):
        if use.blocks and byte % use.blocks:
            text = f"scale factor id {byte} of {matrix}: {use.blocks} bytes start at a multiple"
            yield misuse(rules.INSTRUCTION_SCALE_ID, text)


def _name(shape: MmaShape, use: Use) -> str:
    ws = ".ws" if use.ws else ""
    return f"tcgen05.mma{ws}.cta_group::{use.cta_group}.kind::{shape.kind}"
