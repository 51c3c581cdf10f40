"""Values that are loaded with others and that no instruction reads.

A compiler may widen a load of a few neighbours to a vector, over words that the program never
wrote or that other threads write now. The dropped values are not read by the program: such places
of a vector become `_`, and their words are neither read nor reported.
"""

from collections import Counter
from dataclasses import replace

from kernelpack.emulator.ptx.named import register_indices
from kernelpack.emulator.ptx.syntax import Body, Instruction, Register, Sink, Vector

_STRONG = {"relaxed", "acquire", "volatile", "mmio"}


def without_unread(body: Body) -> Body:
    """The same code; weak vector loads have `_` where nobody reads the value."""
    wide = {n for n, one in enumerate(body.instructions) if _may_drop(one)}
    if not wide:
        return body
    times = Counter(index for one in body.instructions for index in _all(one))
    changed = tuple(
        _dropped(one, times) if n in wide else one for n, one in enumerate(body.instructions)
    )
    return replace(body, instructions=changed)


def _may_drop(one: Instruction) -> bool:
    weak = one.opcode == "ld" and not _STRONG & set(one.modifiers)
    return weak and any(isinstance(to, Vector) for to in one.operands[:1])


def _all(one: Instruction) -> list[int]:
    guard = [one.guard.register.index] if one.guard else []
    return guard + [index for operand in one.operands for index in register_indices(operand)]


def _dropped(one: Instruction, times: Counter[int]) -> Instruction:
    to = one.operands[0]
    assert isinstance(to, Vector)
    items = tuple(
        Sink() if isinstance(item, Register) and times[item.index] == 1 else item
        for item in to.items
    )
    if all(isinstance(item, Sink) for item in items):
        return one
    return replace(one, operands=(Vector(items), *one.operands[1:]))
