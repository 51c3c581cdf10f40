"""The body of an entry: text → instructions with typed operands, labels, registers, source lines.

Names live in the scope that declares them (PTX ISA 4.4.1); a label is sought from the scope of the
branch outwards. Registers are numbered in order of declaration: the number is their row in a warp.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from kernelpack.emulator.faults import PtxError
from kernelpack.emulator.ptx.lexer import Lines, Piece, natural, pieces, split_operands
from kernelpack.emulator.ptx.locations import Locations
from kernelpack.emulator.ptx.operands import OperandReader
from kernelpack.emulator.ptx.syntax import (
    BITS,
    Body,
    Guard,
    Instruction,
    Register,
    Symbol,
    Variable,
)

_STATEMENT = re.compile(r"(?:@(!?)\s*([%\w$]+)\s+)?([A-Za-z_][\w.:]*)(.*)$", re.DOTALL)
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.*)$", re.DOTALL)
_FAMILY = re.compile(r"([\w%$]+)<(\d+)>")
MAX_REGISTERS = 1 << 18
"""More virtual registers than this in one entry are refused."""


@dataclass(frozen=True, slots=True)
class Context:
    """A body's view of its module: lines, source files by number, and how to read variables."""

    lines: Lines
    files: Mapping[int, str]
    read_variable: Callable[[str], Variable]


@dataclass(frozen=True, slots=True)
class Scope:
    """What sets a function's body apart from the entry's, which it follows.

    `name` comes before its labels and after the names of its parameters, which are `formals`;
    its registers are numbered from `first` on. An entry has none of them.
    """

    name: str = ""
    first: int = 0
    formals: tuple[str, ...] = ()


ENTRY = Scope()


def read_body(text: str, start: int, end: int, context: Context, scope: Scope = ENTRY) -> Body:
    """Read `text[start:end]`, the inside of an entry's or a function's braces.

    Raises:
        PtxError: a statement this parser cannot read; `where` names its line.
    """
    reader = _BodyReader(context, scope)
    line = context.lines.line(start)
    try:
        for piece in pieces(text[start:end]):
            line = context.lines.line(start + piece.offset)
            reader.take(piece, line)
        return reader.finish()
    except PtxError as error:
        raise PtxError(error.what, where=error.where or f"ptx:{line}", hint=error.hint) from error


class _BodyReader:
    """The parts read so far: scopes, registers, labels, instructions."""

    def __init__(self, context: Context, scope: Scope) -> None:
        self.scope = scope
        self.locations = Locations(context.files)
        self.read_variable = context.read_variable
        self.operands = OperandReader(self._find)
        self.scopes: list[dict[str, Register | str]] = [
            {name: f"{name}@{scope.name}" for name in scope.formals}
        ]
        self.path: list[int] = [0]
        self.scope_count = 0
        self.registers: list[Register] = []
        self.variables: list[Variable] = []
        self.labels: dict[tuple[str, tuple[int, ...]], int] = {}
        self.instructions: list[Instruction] = []
        self.paths: list[tuple[int, ...]] = []
        self.targets: dict[str, tuple[str, ...]] = {}
        self.pending_label = ""

    def take(self, piece: Piece, line: int) -> None:
        """Read one piece."""
        if piece.kind == "open":
            self.scope_count += 1
            self.scopes.append({})
            self.path.append(self.scope_count)
            self.operands.known.clear()
        elif piece.kind == "close":
            self.scopes.pop()
            self.path.pop()
            self.operands.known.clear()
        elif piece.kind == "label":
            self.labels.setdefault((piece.text, tuple(self.path)), len(self.instructions))
            self.pending_label = piece.text
        elif piece.kind == "directive":
            self.locations.take(piece.text)
        elif piece.text.startswith("."):
            self._declare(piece.text)
        else:
            self._instruction(piece.text, line)

    def _declare(self, text: str) -> None:
        self.operands.known.clear()
        if match := _REGISTERS.match(text):
            if match.group(1) not in BITS:
                raise PtxError(f"registers of unknown type `.{match.group(1)}`")
            for name in split_operands(match.group(2)):
                self._declare_registers(name, BITS[match.group(1)])
        elif text.startswith((".shared", ".local", ".param")):
            variable = self.read_variable(text)
            if variable.space == "param":
                self.scope_count += 1
                self.scopes[-1][variable.name] = (
                    f"{variable.name}@{self.scope.name}{self.scope_count}"
                )
            self.variables.append(variable)
        elif text.startswith(".branchtargets"):
            names = tuple(split_operands(text.removeprefix(".branchtargets")))
            self.targets[self.pending_label] = names
        elif not text.startswith((".callprototype", ".pragma", ".noreturn")):
            raise PtxError(f"unknown directive `{text[:60]}`")

    def _declare_registers(self, name: str, bits: int) -> None:
        family = _FAMILY.fullmatch(name)
        count = natural(family.group(2)) if family else 1
        if len(self.registers) + count > MAX_REGISTERS:
            raise PtxError(f"more than {MAX_REGISTERS} registers")
        names = [f"{family.group(1)}{k}" for k in range(count)] if family else [name]
        first, registers, scope = self.scope.first, self.registers, self.scopes[-1]
        for one in names:
            register = Register(one, first + len(registers), bits)
            registers.append(register)
            scope[one] = register

    def _find(self, name: str) -> Register | str | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def _instruction(self, text: str, line: int) -> None:
        match = _STATEMENT.match(text)
        if match is None:
            raise PtxError(f"not an instruction: `{text[:80]}`")
        negated, predicate, name, rest = match.groups()
        opcode, *modifiers = name.split(".")
        if opcode == "ret" and self.scope.name:
            opcode = "return"
        self.instructions.append(
            Instruction(
                opcode=opcode,
                modifiers=tuple(modifiers),
                operands=tuple(self.operands.read(part) for part in split_operands(rest)),
                guard=self._guard(predicate, bool(negated)) if predicate else None,
                text=" ".join(text.split()),
                line=line,
                location=self.locations.now,
            )
        )
        self.paths.append(tuple(self.path))

    def _guard(self, name: str, negated: bool) -> Guard:
        register = self._find(name)
        if not isinstance(register, Register) or register.bits != 1:
            raise PtxError(f"`{name}` is not a predicate")
        return Guard(register, negated)

    def finish(self) -> Body:
        """The body, its branches bound to labels by scope."""
        unique = {
            key: f"{self.scope.name}{key[0]}@{'.'.join(map(str, key[1]))}" for key in self.labels
        }
        bound = tuple(
            self._bind(instruction, path, unique)
            for instruction, path in zip(self.instructions, self.paths, strict=True)
        )
        return Body(
            instructions=bound,
            labels={unique[key]: index for key, index in self.labels.items()},
            registers=tuple(self.registers),
            variables=tuple(self.variables),
            branch_targets={
                self.scope.name + name: tuple(
                    self._label(target, (0,), unique) for target in targets
                )
                for name, targets in self.targets.items()
            },
        )

    def _bind(
        self,
        instruction: Instruction,
        path: tuple[int, ...],
        unique: Mapping[tuple[str, tuple[int, ...]], str],
    ) -> Instruction:
        if instruction.opcode == "brx" and self.scope.name:
            index, table = instruction.operands
            if isinstance(table, Symbol):
                return replace(instruction, operands=(index, Symbol(self.scope.name + table.name)))
        if instruction.opcode != "bra":
            return instruction
        target = instruction.operands[0] if instruction.operands else None
        if not isinstance(target, Symbol):
            raise PtxError(f"a branch without a label: `{instruction.text[:60]}`")
        label = Symbol(self._label(target.name, path, unique))
        return Instruction(
            opcode=instruction.opcode,
            modifiers=instruction.modifiers,
            operands=(label,),
            guard=instruction.guard,
            text=instruction.text,
            line=instruction.line,
            location=instruction.location,
        )

    @staticmethod
    def _label(
        name: str, path: tuple[int, ...], unique: Mapping[tuple[str, tuple[int, ...]], str]
    ) -> str:
        for depth in range(len(path), 0, -1):
            if found := unique.get((name, path[:depth])):
                return found
        raise PtxError(f"a branch to `{name}`, which no enclosing scope declares")
