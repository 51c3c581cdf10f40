"""The assembler's rules: no instructions of other targets, right number and width of operands.

A form that gets past it and that a builder still stumbles over is refused as well, by name.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from kernelpack.emulator.faults import UnsupportedError
from kernelpack.emulator.ptx.syntax import BITS, Instruction, Register
from kernelpack.emulator.semantics.table import Form, Op, unsupported, wrong
from kernelpack.spec.arch import FAMILIES

_WIDER = frozenset({"ld", "ldu", "st", "cvt"})
"""Opcodes whose registers may be wider than their type (PTX ISA 9.4.1)."""
_VECTORS = ("v2", "v4", "v8")


STUMBLES = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of code that gets values of another type, number or range than it takes."""


def check_target(instruction: Instruction, target: str) -> None:
    """Refuse an instruction that the module's target does not have.

    Raises:
        PtxError: names both.
    """
    for family in FAMILIES:
        if family.has(target):
            continue
        if instruction.opcode in family.opcodes:
            raise wrong(instruction, f"`{instruction.opcode}` is not an instruction of {target}")
        for modifier in family.copies if instruction.opcode == "cp" else ():
            if modifier in instruction.modifiers:
                raise wrong(instruction, f"`.{modifier}` is not a modifier of {target}")


def check_operands(op: Op, form: Form, words: tuple[str, ...]) -> None:
    """Refuse another number of operands than the words describe, and vectors of other lengths.

    Raises:
        PtxError: says how many there are.
    """
    count = len(form.instruction.operands)
    if not sum(not word.endswith("?") for word in words) <= count <= len(words):
        raise wrong(form.instruction, f"{count} operands where `{op.name}` has {len(words)}")
    if "v2" not in op.flags:
        return
    length = int(form.one_of(_VECTORS, "v1")[1:])
    for position, word in enumerate(words[:count]):
        if word.lstrip("=").startswith("{"):
            form.expect(position, length)


def check_width(instruction: Instruction, register: Register, kind: str) -> None:
    """Refuse a register that does not hold a value of this type.

    Raises:
        PtxError: names the register, its width and the type.
    """
    width, bits = BITS[kind], register.bits
    wider = instruction.opcode in _WIDER and bits > width > 1
    if bits != width and not wider:
        raise wrong(instruction, f"`{register.name}` of {bits} bits where `.{kind}` is expected")


@contextmanager
def refused(instruction: Instruction) -> Iterator[None]:
    """Tell of what a builder stumbles over as what it is: no form of the instruction.

    Raises:
        PtxError: names the instruction.
        UnsupportedError: names it too, where a model knows of numbers alone.
    """
    try:
        yield
    except UnsupportedError as error:
        if error.where:
            raise
        raise unsupported(instruction, error.what) from error
    except STUMBLES as error:
        raise wrong(instruction, "operands or modifiers that do not go together") from error
