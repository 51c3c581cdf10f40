"""Nodes → Python functions, generated when a node is first run.

A block's function calls the handlers of the table on the lanes of the register file, one line an
instruction. Registers are unsigned; a value is seen as another type only where a handler asks.
"""

from collections.abc import Callable
from typing import Any

from kernelpack.emulator.machine.lanes import Lanes, constant
from kernelpack.emulator.ptx.named import register_indices
from kernelpack.emulator.ptx.syntax import (
    BITS,
    Address,
    Guard,
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
from kernelpack.emulator.semantics.table import Form, Op, unsupported, wrong
from kernelpack.emulator.translate.fits import check_operands, check_target, check_width, refused
from kernelpack.emulator.translate.literal import literal_bits
from kernelpack.emulator.translate.shapes import function
from kernelpack.emulator.translate.translate import Code, Node
from kernelpack.emulator.translate.views import kept_as, number_of, read_as


def compile_block(code: Code, node: Node, *, masked: bool) -> Callable[..., Any]:
    """Generate the function of a block, for all lanes or under a mask `m`."""
    writer = _Writer(code)
    lines = []
    for index in range(node.first, node.first + node.count):
        instruction = code.entry.body.instructions[index]
        with refused(instruction):
            lines += writer.plain(instruction, index, masked=masked)
    return function("R, w, m", lines, writer.own)


def compile_control(code: Code, node: Node) -> Callable[..., Any]:
    """Generate the function of a control instruction; True when it is done, False when it waits."""
    instruction = code.entry.body.instructions[node.first]
    with refused(instruction):
        return _Writer(code).control(node, instruction, node.first)


class _Writer:
    """Writes Python for the instructions of a function, with what is its own by name in `own`."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.own: dict[str, Any] = {}
        self.names: dict[object, str] = {}
        """Of registers, by index, and of constants."""
        self.instruction: Instruction

    def _keep(self, thing: Any, prefix: str) -> str:  # noqa: ANN401
        name = f"{prefix}{len(self.own)}"
        self.own[name] = thing
        return name

    def _register(self, index: int) -> str:
        name = self.names.get(index)
        if name is None:
            name = self.names[index] = f"R[{self._keep(index, 'r')}]"
        return name

    def _begin(self, instruction: Instruction) -> tuple[Op, Form]:
        """The row of the table of the instruction that is written now, and its form."""
        self.instruction = instruction
        check_target(instruction, self.code.entry.target)
        op = families.find(instruction)
        form = op.form(instruction)
        check_operands(op, form, op.words(form))
        return op, form

    def plain(self, instruction: Instruction, index: int, *, masked: bool) -> list[str]:
        """The lines of an instruction inside a block."""
        op, form = self._begin(instruction)
        lines, mask = self._mask(instruction.guard, "m" if masked else None)
        built = op.build(form)
        handler = self._keep(built, "h")
        sources, targets = self._operands(op, form)
        copies = built is families.COPY
        if not copies or mask is not None:
            lines += self._landing(instruction, index)
        if op.kind == "machine":
            lines.append(f"w.at = {self._keep(index, 'at')}")
            sources = ["w", mask or "None", *sources]
        call = f"{handler}({', '.join(sources)})"
        if copies:
            call = sources[0]
        return lines + self._assign(targets, call, mask)

    def control(self, node: Node, instruction: Instruction, index: int) -> Callable[..., Any]:
        """The function of a control instruction."""
        op, form = self._begin(instruction)
        node.yields = op.yields
        handler = self._keep(op.build(form), "h")
        lines = [f"w.at = {self._keep(index, 'at')}"]
        if op.converged or "aligned" in form.flags:
            text = self._keep((f"`{op.name}`", op.section), "t")
            lines += [
                "if not w.converged(s):",
                "    s.wait = apart(w, s)",
                "    return False",
                f"if w.apart: met(w, s, *{text})",
            ]
        more, mask = self._mask(instruction.guard, "active")
        assert mask is not None
        lines += more
        if instruction.guard:
            lines += ["if not count(pm):", "    s.pc += 1", "    return True"]
        if not op.delayed:
            lines += self._landing(instruction, index)
        sources, targets = self._operands(op, form)
        lines += [
            f"r_ = {handler}(w, s, {', '.join([mask, *sources])})",
            "if r_.__class__ is Wait:",
            "    s.wait = r_",
            "    return False",
            *self._assign(targets, "r_", mask, delayed=op.delayed),
            "s.pc += 1",
            "return True",
        ]
        return function("R, w, s, active", lines, self.own)

    def _mask(self, guard: Guard | None, outer: str | None) -> tuple[list[str], str | None]:
        if guard is None:
            return [], outer
        predicate = ("~" if guard.negated else "") + self._register(guard.register.index)
        return [f"pm = {predicate}" + (f" & {outer}" if outer else "")], "pm"

    def _landing(self, instruction: Instruction, index: int) -> list[str]:
        """Let registers that are still being filled be filled before they are used.

        A move by reference is no use: what it makes is filled together with its source.
        """
        if not self.code.delayed:
            return []
        touched = {i for operand in instruction.operands for i in register_indices(operand)}
        late = sorted(touched & self.code.delayed)
        if not late:
            return []
        arguments = ", ".join(map(self._register, late))
        return [f"if w.inflight: w.at = {self._keep(index, 'at')}; w.land({arguments})"]

    # -- operands ---------------------------------------------------------------------------

    def _operands(self, op: Op, form: Form) -> tuple[list[str], list[tuple[Operand, str]]]:
        """Expressions of the sources; destinations with their types."""
        sources: list[str] = []
        targets: list[tuple[Operand, str]] = []
        for word, operand in zip(op.words(form), self.instruction.operands, strict=False):
            plain = word.rstrip("?")
            if plain.startswith("="):
                targets += self._targets(plain[1:], operand, form)
            elif plain.endswith("+"):
                sources += self._tensor_address(plain[1:-1], operand)
            elif plain not in ("#", "~"):
                sources.append(self._source(plain, operand, form))
        return sources, targets

    def _targets(self, word: str, operand: Operand, form: Form) -> list[tuple[Operand, str]]:
        if "|" in word:
            first, second = word.split("|")
            pair = operand if isinstance(operand, Pair) else Pair(operand, Sink())
            return [(pair.first, form.type_of(first)), (pair.second, form.type_of(second))]
        if word.startswith("{"):
            kind = form.type_of(word[1:-1])
            items = operand.items if isinstance(operand, Vector) else (operand,)
            return [(item, kind) for item in items]
        return [(operand, form.type_of(word))]

    def _source(self, word: str, operand: Operand, form: Form) -> str:
        if word.startswith("@"):
            return self.address(operand, word[1:] or form.space)
        if word.startswith("{"):
            kind = form.type_of(word[1:-1])
            items = operand.items if isinstance(operand, Vector) else (operand,)
            return "[" + ", ".join(self.value(item, kind) for item in items) + "]"
        return self.value(operand, form.type_of(word))

    def _tensor_address(self, space: str, operand: Operand) -> list[str]:
        """`[map, {x, y}]`: the address of the map, and the list of coordinates."""
        if not isinstance(operand, Address) or operand.coordinates is None:
            raise unsupported(self.instruction, "coordinates are expected")
        items = (self.value(item, "s32") for item in operand.coordinates.items)
        return [self.address(operand, space), "[" + ", ".join(items) + "]"]

    def constant(self, bits: int, width: int, kind: str = "u64") -> str:
        """The name of a constant with these bits in every lane, seen as type `kind`."""
        key = (bits, width, number_of(kind))
        if key not in self.names:
            self.names[key] = self._keep(self._lanes(*key), "k")
        return self.names[key]

    def _lanes(self, bits: int, width: int, number: str) -> Lanes:
        """A constant's lanes, which are made once for all of the code."""
        key = (bits, width, number)
        if key not in self.code.constants:
            lanes = constant(bits, width)
            self.code.constants[key] = (
                lanes if number == "u" else lanes.view(f"{number}{width // 8}")
            )
        return self.code.constants[key]

    def value(self, operand: Operand, kind: str) -> str:
        """An expression for a source operand, as lanes of type `kind`."""
        if isinstance(operand, Register):
            check_width(self.instruction, operand, kind)
            return read_as(self._register(operand.index), operand.bits, kind)
        if isinstance(operand, Immediate):
            return self.constant(literal_bits(operand, kind), BITS[kind], kind)
        if isinstance(operand, Special):
            bits = 64 if operand.name in ("clock64", "globaltimer") else 32
            bits = 1 if operand.name == "is_explicit_cluster" else bits
            return read_as(f"w.special({operand.name!r})", bits, kind)
        if isinstance(operand, Negated):
            inner = self.value(operand.operand, kind)
            return f"(~{inner})" if kind == "pred" else f"(-{inner})"
        if isinstance(operand, Symbol):
            return self._symbol(operand, BITS[kind])
        raise unsupported(self.instruction, f"an operand of the wrong kind for `.{kind}`")

    def _symbol(self, symbol: Symbol, width: int) -> str:
        name = symbol.name.split("@")[0]
        place = self.code.layout.symbols.get(name)
        if place is None:
            raise unsupported(self.instruction, f"symbol `{name}` is not known")
        base = self.constant((place.address + symbol.offset) & ((1 << width) - 1), width)
        if place.space == "shared":
            return f"({base} + w.cta.rank_base_{width})"
        return base

    def address(self, operand: Operand, space: str) -> str:
        """An expression for an address operand: u64 lanes, an offset where `space` has offsets."""
        if not isinstance(operand, Address):
            raise unsupported(self.instruction, "an address is expected")
        base = operand.base
        if isinstance(base, Register):
            wide = read_as(self._register(base.index), base.bits, "u64")
            if base.bits == 64 and space in ("shared", "tensor"):
                wide = f"({wide} & {self.constant(0xFFFF_FFFF, 64)})"
            if operand.offset:
                offset = self.constant(operand.offset & (2**64 - 1), 64)
                wide = f"({wide} + {offset})"
            return wide
        if isinstance(base, Immediate):
            return self.constant((base.value + operand.offset) & (2**64 - 1), 64)
        if "@" in base.name and space == "param":
            return repr((base.name, base.offset + operand.offset))
        expression = self._symbol(Symbol(base.name, base.offset + operand.offset), 64)
        place = self.code.layout.symbols[base.name.split("@")[0]]
        if space == "generic" and place.space in WINDOWS:
            window = self.constant(WINDOWS[place.space], 64)
            return f"({expression} + {window})"
        return expression

    def _assign(
        self,
        targets: list[tuple[Operand, str]],
        call: str,
        mask: str | None,
        *,
        delayed: bool = False,
    ) -> list[str]:
        """Store what a call returns in the destinations."""
        live = [(operand, kind) for operand, kind in targets if not isinstance(operand, Sink)]
        if not live:
            return [call] if call != "r_" else []
        if len(targets) == 1:
            return [self._store(*targets[0], call, mask, delayed=delayed)]
        lines = [] if call == "r_" else [f"r_ = {call}"]
        for position, (operand, kind) in enumerate(targets):
            if not isinstance(operand, Sink):
                value = f"r_[{position}]"
                lines.append(self._store(operand, kind, value, mask, delayed=delayed))
        return lines

    def _store(
        self, operand: Operand, kind: str, value: str, mask: str | None, *, delayed: bool
    ) -> str:
        if not isinstance(operand, Register):
            raise wrong(self.instruction, "a destination must be a register")
        check_width(self.instruction, operand, kind)
        place = self._register(operand.index)
        value = kept_as(value, kind, operand.bits)
        if mask is None or delayed:
            return f"{place} = {value}"
        lanes = f"{mask}[:, None]" if operand.bits == 128 else mask
        whole = f"{value} if {mask} is EVERY else " if mask == "active" else ""
        return f"{place} = {whole}where({lanes}, {value}, {place})"
