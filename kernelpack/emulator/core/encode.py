"""An entry's code → the text that the core reads (program.cpp): a line a node or instruction.

Instructions are decoded by the rows of the Python table: the core sees the modifiers, types and
operands that a row's builder sees. What has no row, or operands that a row would refuse, is
`unknown`: the core gives up where it gets there.

Instructions that differ in registers and in what is added to addresses alone are decoded once: the
line of the first, with gaps, serves the others.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from kernelpack.emulator.ptx.named import register_indices
from kernelpack.emulator.ptx.syntax import (
    BITS,
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)
from kernelpack.emulator.semantics import families
from kernelpack.emulator.semantics.spaces import WINDOWS
from kernelpack.emulator.semantics.table import Form, Op
from kernelpack.emulator.translate.fits import STUMBLES, check_operands, check_target, check_width
from kernelpack.emulator.translate.literal import literal_bits
from kernelpack.emulator.translate.translate import Code, Node
from kernelpack.errors import KernelpackError

_NODES = ("block", "control", "branch", "table", "exit", "unknown")
_WIDE_SPECIALS = {"clock64": 64, "globaltimer": 64, "is_explicit_cluster": 1}
_ONES = (1 << 64) - 1
_SINK = "_"
_GAP = re.compile("\0([0-9]+)\0")
"""In a line that serves several instructions: which of its values stands here."""
_ADDRESS, _VECTOR, _NEGATED, _PAIR = range(4)
"""Kinds of operands that have parts, in shapes."""


class _NotSoError(Exception):
    """An operand that the core has no word for."""


def encode(code: Code) -> str:
    """The text of a code."""
    writer = _Writer(code)
    lines = [writer.instruction(at, one) for at, one in enumerate(code.entry.body.instructions)]
    nodes = [writer.node(node) for node in code.nodes]
    head = [_listed("widths", map(str, code.widths)), _listed("specials", writer.specials)]
    return "\n".join([*head, *lines, *nodes]) + "\n"


def _listed(name: str, words: Iterable[str]) -> str:
    """A list as the core reads it: how many, then each."""
    found = list(words)
    return " ".join([*([name] if name else []), str(len(found)), *found])


@dataclass(frozen=True, slots=True)
class _Decoded:
    """The line of instructions of one shape, around the guard; which value fills each gap."""

    head: str
    tail: str
    gaps: tuple[int, ...]
    yields: bool


class _Writer:
    """Writes the lines of one code; `specials` are the special registers by their numbers."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.specials: dict[str, int] = {}
        self.yields: dict[int, bool] = {}
        self.now: Instruction
        self.decoded: dict[object, _Decoded | None] = {}

    def node(self, node: Node) -> str:
        """A node: its kind, what it runs, where it leads, its guard."""
        kind = node.kind if node.kind in _NODES else "unknown"
        guard, negated = node.guard or (-1, False)
        yields = self.yields.get(node.first, False)
        index = -1
        if node.kind == "table":
            register = self.code.entry.body.instructions[node.first].operands[0]
            assert isinstance(register, Register)
            index = register.index
        words: list[object] = [
            "node", _NODES.index(kind), node.first, node.count, int(yields), node.target,
            _listed("", map(str, node.targets)), guard, int(negated), index,
        ]  # fmt: skip
        return " ".join(map(str, words))

    def instruction(self, at: int, instruction: Instruction) -> str:
        """An instruction, or that there is one which the core does not know."""
        values: list[int] = []
        shapes = [_shape(operand, values) for operand in instruction.operands]
        shape = instruction.opcode, instruction.modifiers, *shapes
        if shape not in self.decoded:
            self.decoded[shape] = self._decoded(instruction)
        found = self.decoded[shape]
        if found is None:
            return f"unknown {at}"
        self.yields[at] = found.yields
        guard = instruction.guard
        who = f"{guard.register.index} {int(guard.negated)}" if guard else "-1 0"
        tail = found.tail % tuple([values[gap] for gap in found.gaps])
        late = _listed("", map(str, self._late(instruction)))
        return f"instruction {at} {found.head} {who} {tail} {late}"

    def _decoded(self, instruction: Instruction) -> _Decoded | None:
        """What instructions of this shape have in common; None if the core does not know them."""
        numbers = iter(range(1 << 30))
        operands = tuple(_numbered(operand, numbers) for operand in instruction.operands)
        try:
            return self._known(replace(instruction, operands=operands))
        except (KernelpackError, _NotSoError, *STUMBLES):
            return None

    def _known(self, instruction: Instruction) -> _Decoded:
        self.now = instruction
        check_target(instruction, self.code.entry.target)
        op = families.find(instruction)
        form = op.form(instruction)
        check_operands(op, form, op.words(form))
        sources, targets = self._operands(op, form)
        parts = [
            int(op.converged or "aligned" in form.flags), int(op.yields), int(op.delayed),
            int(op.build(form) is families.COPY), form.space,
            _listed("", form.types),
            _listed("", sorted(form.flags)),
            _listed("", instruction.modifiers),
            _listed("", map(_constant, instruction.operands)),
            _listed("", sources),
            _listed("", targets),
        ]  # fmt: skip
        tail = " ".join(map(str, parts))
        return _Decoded(
            head=f"{op.kind} {op.name}",
            tail=_GAP.sub("%d", tail.replace("%", "%%")),
            gaps=tuple(map(int, _GAP.findall(tail))),
            yields=op.kind == "control" and op.yields,
        )

    def _late(self, instruction: Instruction) -> list[int]:
        """The registers it touches that may be filled later."""
        touched = {i for operand in instruction.operands for i in register_indices(operand)}
        return sorted(touched & self.code.delayed)

    # -- operands ---------------------------------------------------------------------------

    def _operands(self, op: Op, form: Form) -> tuple[list[str], list[str]]:
        sources: list[str] = []
        targets: list[str] = []
        for word, operand in zip(op.words(form), form.instruction.operands, strict=False):
            plain = word.rstrip("?")
            if plain.startswith("="):
                targets += self._targets(plain[1:], operand, form)
            elif plain.startswith("@"):
                sources.append(self._address(plain[1:], operand, form))
            elif plain not in ("#", "~"):
                sources.append(self._source(plain, operand, form))
        return sources, targets

    def _targets(self, word: str, operand: Operand, form: Form) -> Iterator[str]:
        if "|" in word:
            pair = operand if isinstance(operand, Pair) else Pair(operand, Sink())
            for each, kind in zip((pair.first, pair.second), word.split("|"), strict=True):
                yield self._target(form.type_of(kind), [each])
        elif word.startswith("{"):
            items = operand.items if isinstance(operand, Vector) else (operand,)
            yield self._target(form.type_of(word[1:-1]), items, vector=True)
        else:
            yield self._target(form.type_of(word), [operand])

    def _target(self, kind: str, items: Iterable[Operand], *, vector: bool = False) -> str:
        words = []
        for item in items:
            if isinstance(item, Register):
                check_width(self.now, item, kind)
                words.append(_register(item))
            elif isinstance(item, Sink):
                words.append(_SINK)
            else:
                raise _NotSoError
        return _operand(kind, words, vector=vector)

    def _source(self, word: str, operand: Operand, form: Form) -> str:
        if word.startswith("{"):
            kind = form.type_of(word[1:-1])
            items = operand.items if isinstance(operand, Vector) else (operand,)
            return _operand(kind, [self._value(item, kind) for item in items], vector=True)
        kind = form.type_of(word)
        return _operand(kind, [self._value(operand, kind)])

    def _address(self, word: str, operand: Operand, form: Form) -> str:
        """An address: its base, what is added, and the coordinates of a tensor."""
        if not isinstance(operand, Address):
            raise _NotSoError
        space = word.removesuffix("+") or form.space
        items = [self._base(operand, space)]
        offset = _gap(operand.offset) if isinstance(operand.base, Register) else "0"
        if operand.coordinates is not None:
            items += [self._value(item, "s32") for item in operand.coordinates.items]
        return _operand(space, items, address=True, offset=offset)

    def _base(self, operand: Address, space: str) -> str:
        base = operand.base
        if isinstance(base, Register):
            return _register(base)
        if isinstance(base, Immediate):
            return _bits(base.value + operand.offset, 64)
        if "@" in base.name and space == "param":
            raise _NotSoError
        window = 0
        place = self.code.layout.symbols.get(base.name.split("@")[0])
        if place is not None and space == "generic" and place.space in WINDOWS:
            window = WINDOWS[place.space]
        return self._symbol(Symbol(base.name, base.offset + operand.offset), 64, window)

    def _value(self, operand: Operand, kind: str) -> str:
        """A source as a value of a type."""
        if isinstance(operand, Register):
            check_width(self.now, operand, kind)
            return _register(operand)
        if isinstance(operand, Immediate):
            return _bits(literal_bits(operand, kind), BITS[kind])
        if isinstance(operand, Special):
            return self._special(operand)
        if isinstance(operand, Negated):
            inner = operand.operand
            if isinstance(inner, Special):
                return self._special(inner, negated=True)
            return _register(inner, negated=True)
        if isinstance(operand, Symbol):
            return self._symbol(operand, BITS[kind], 0)
        raise _NotSoError

    def _special(self, operand: Special, *, negated: bool = False) -> str:
        number = self.specials.setdefault(operand.name, len(self.specials))
        return f"S {int(negated)} {number} {_WIDE_SPECIALS.get(operand.name, 32)}"

    def _symbol(self, symbol: Symbol, width: int, window: int) -> str:
        place = self.code.layout.symbols.get(symbol.name.split("@")[0])
        if place is None:
            raise _NotSoError
        value = place.address + symbol.offset
        if place.space == "shared":
            return f"A {width} {value + window & (1 << width) - 1}"
        return _bits(value + window, width)


def _operand(
    kind: str, items: list[str], *, vector: bool = False, address: bool = False, offset: str = "0"
) -> str:
    return f"{kind} {int(address)} {int(vector)} {offset} {_listed('', items)}"


def _register(register: Register, *, negated: bool = False) -> str:
    return f"R {int(negated)} {_gap(register.index)}"


def _gap(number: int) -> str:
    return f"\0{number}\0"


def _shape(operand: Operand, values: list[int]) -> object:
    """What two operands that are encoded alike have in common; in what they differ is added."""
    if isinstance(operand, Register):
        values.append(operand.index)
        return operand.bits
    if isinstance(operand, Vector):
        return _VECTOR, *[_shape(item, values) for item in operand.items]
    if isinstance(operand, Address):
        return _ADDRESS, *_shape_of_address(operand, values)
    if isinstance(operand, Negated):
        return _NEGATED, _shape(operand.operand, values)
    if isinstance(operand, Pair):
        return _PAIR, _shape(operand.first, values), _shape(operand.second, values)
    return operand


def _shape_of_address(operand: Address, values: list[int]) -> tuple[object, ...]:
    base = _shape(operand.base, values)
    coordinates = operand.coordinates and _shape(operand.coordinates, values)
    if not isinstance(operand.base, Register):
        return base, coordinates, operand.offset
    values.append(operand.offset & _ONES)
    return base, coordinates


def _numbered(operand: Operand, numbers: Iterator[int]) -> Any:  # noqa: ANN401, as it was given
    """An operand with the place among the values of its shape in place of each of them."""
    if isinstance(operand, Register):
        return replace(operand, index=next(numbers))
    if isinstance(operand, Vector):
        return Vector(tuple(_numbered(item, numbers) for item in operand.items))
    if isinstance(operand, Address):
        return _numbered_address(operand, numbers)
    if isinstance(operand, Negated):
        return replace(operand, operand=_numbered(operand.operand, numbers))
    if isinstance(operand, Pair):
        return Pair(_numbered(operand.first, numbers), _numbered(operand.second, numbers))
    return operand


def _numbered_address(operand: Address, numbers: Iterator[int]) -> Address:
    base = _numbered(operand.base, numbers)
    coordinates = operand.coordinates and _numbered(operand.coordinates, numbers)
    offset = next(numbers) if isinstance(base, Register) else operand.offset
    return replace(operand, base=base, coordinates=coordinates, offset=offset)


def _bits(value: int, width: int) -> str:
    value &= (1 << width) - 1
    return f"C {width} {value & _ONES} {value >> 64}"


def _constant(operand: Operand) -> str:
    """An integer that is known now; one that 64 bits with a sign do not hold is no length."""
    if isinstance(operand, Immediate) and abs(operand.value) < 1 << 63:
        return str(operand.value)
    return "-"
