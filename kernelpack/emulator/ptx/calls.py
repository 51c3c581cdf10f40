"""Functions that were not inlined: an entry's body, and after it those that it may call.

All of them share one list of instructions and one register file; each has its own registers there,
its own labels, and its own names of parameters. How a call works is for the machine to say.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kernelpack.emulator.ptx.syntax import Body, Callee, Instruction, Symbol, Vector

CODE_BASE = 0x4000
"""Addresses of functions begin here; they are no addresses of memory."""
_STEP = 16
_NAME = re.compile(r"[\w$]+")


@dataclass(frozen=True, eq=False)
class Function:
    """A `.func`: its results and parameters as names that its body uses, and how to read that.

    `read(first)` numbers the registers from `first` on.
    """

    name: str
    results: tuple[str, ...]
    parameters: tuple[str, ...]
    read: Callable[[int], Body] = field(repr=False)

    @property
    def scope(self) -> str:
        """The prefix or suffix of its labels and names of parameters."""
        return f"{self.name}:"


@dataclass(frozen=True)
class Functions:
    """Those of a module, in order."""

    by_name: Mapping[str, Function] = field(default_factory=dict)

    @cached_property
    def addresses(self) -> dict[str, int]:
        """The value of a pointer to each of them."""
        return {name: CODE_BASE + _STEP * at for at, name in enumerate(self.by_name)}


def split_signature(head: str) -> tuple[str, str, str]:
    """The results, the name and the parameters of a `.func`, as written."""
    text = head.strip()
    results = ""
    if text.startswith("("):
        results, _, text = text[1:].partition(")")
    name = _NAME.match(text.strip())
    rest = text.strip()[name.end() :].strip() if name else ""
    return results, name[0] if name else "", rest.removeprefix("(").partition(")")[0]


def with_functions(body: Body, functions: Functions) -> Body:
    """A body, and after it every function that it may reach."""
    called = _reached(body, functions)
    if not called:
        return body
    instructions = [*body.instructions, _end("exit")]
    registers, variables = list(body.registers), list(body.variables)
    labels, targets = dict(body.labels), dict(body.branch_targets)
    callees = {}
    for name, own in called.items():
        function, first, start = functions.by_name[name], len(registers), len(instructions)
        own = function.read(first)  # noqa: PLW2901 - now with its registers after the others
        registers += own.registers
        instructions += [*own.instructions, _end("return")]
        variables += own.variables
        labels |= {label: start + at for label, at in own.labels.items()}
        targets |= own.branch_targets
        callees[name] = Callee(
            name=name,
            start=start,
            registers=range(first, len(registers)),
            results=tuple(f"{each}@{function.scope}" for each in function.results),
            parameters=tuple(f"{each}@{function.scope}" for each in function.parameters),
            has_locals=any(v.space == "local" for v in own.variables),
        )
    return Body(tuple(instructions), labels, tuple(registers), tuple(variables), targets, callees)


def _end(opcode: str) -> Instruction:
    return Instruction(opcode, (), (), None, opcode, 0, None)


def _reached(body: Body, functions: Functions) -> dict[str, Body]:
    """The functions that are called from a body, or that a pointer may lead to."""
    found: dict[str, Body] = {}
    ahead = [body]
    while ahead:
        names = set(_named(ahead.pop().instructions, functions))
        for name in functions.by_name:
            if name in names and name not in found:
                found[name] = functions.by_name[name].read(0)
                ahead.append(found[name])
    return found


def _named(instructions: Iterable[Instruction], functions: Functions) -> Iterable[str]:
    """The functions that instructions name; all of them where one calls by a pointer."""
    for instruction in instructions:
        if instruction.opcode == "call" and target(instruction) is None:
            yield from functions.by_name
        for operand in instruction.operands:
            if isinstance(operand, Symbol) and operand.name in functions.by_name:
                yield operand.name


def target(instruction: Instruction) -> str | None:
    """The function that a call names; None where it calls by a pointer."""
    for operand in instruction.operands:
        if not isinstance(operand, Vector):
            return operand.name if isinstance(operand, Symbol) else None
    return None


def lists(instruction: Instruction) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names that a call's results and arguments have with the caller."""
    at = next(i for i, each in enumerate(instruction.operands) if not isinstance(each, Vector))
    before, behind = instruction.operands[:at], instruction.operands[at + 1 :]
    return _names(before), _names(behind[:1])


def _names(operands: Iterable[object]) -> tuple[str, ...]:
    return tuple(
        item.name
        for operand in operands
        if isinstance(operand, Vector)
        for item in operand.items
        if isinstance(item, Symbol)
    )
