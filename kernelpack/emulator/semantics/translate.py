"""An entry's instructions → nodes that a warp runs.

Straight-line code becomes blocks: one Python function each, generated on first use, that calls the
handlers of the table on the lanes of the register file. There are two of each, for a warp that runs
with all its lanes and for one under a mask. Instructions that can wait or branch are nodes alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelpack.emulator.faults import UnsupportedError
from kernelpack.emulator.machine.lanes import constant
from kernelpack.emulator.machine.warp import Wait
from kernelpack.emulator.ptx.link import Layout
from kernelpack.emulator.ptx.parser import Entry
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
from kernelpack.emulator.semantics.literal import literal_bits
from kernelpack.emulator.semantics.spaces import WINDOWS
from kernelpack.emulator.semantics.table import Form, Op, unsupported

BLOCK_LIMIT = 48
"""Instructions in one generated function."""
_VIEW = {"s": "i", "f": "f"}
_NUMPY = {
    f"{kind}{size}": getattr(np, f"{word}{8 * size}")
    for kind, word, sizes in (("u", "uint", (1, 2, 4, 8)), ("i", "int", (1, 2, 4, 8)))
    for size in sizes
} | {"f2": np.float16, "f4": np.float32, "f8": np.float64}


@dataclass(slots=True, eq=False)
class Node:
    """A block, a control instruction, a branch or an exit.

    `run(registers, warp, mask)` for a block, `run(registers, warp, split, mask)` for control.
    """

    kind: str
    first: int
    count: int = 1
    run: Callable[..., Any] | None = None
    run_masked: Callable[..., Any] | None = None
    target: int = -1
    guard: tuple[int, bool] | None = None
    yields: bool = False
    text: str = ""


@dataclass(slots=True)
class Code:
    """The nodes of an entry; `pc_of` gives the node at which a label stands."""

    entry: Entry
    layout: Layout
    nodes: list[Node] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    delayed: frozenset[int] = frozenset()
    names: dict[str, Any] = field(default_factory=dict)
    constants: dict[tuple[int, int], str] = field(default_factory=dict)


_KEPT = 64
_TRANSLATED: dict[tuple[Entry, tuple[object, ...]], Code] = {}
"""Code by entry and layout: it holds no state of a run, and generating it takes the longest."""


def translate(entry: Entry, layout: Layout) -> Code:
    """Cut an entry into nodes. Blocks are generated when they are first run, and kept."""
    key = (entry, layout.key)
    if key not in _TRANSLATED:
        while len(_TRANSLATED) >= _KEPT:
            del _TRANSLATED[next(iter(_TRANSLATED))]
        _TRANSLATED[key] = _translate(entry, layout)
    return _TRANSLATED[key]


def _translate(entry: Entry, layout: Layout) -> Code:
    body = entry.body
    code = Code(entry, layout, widths=[register.bits for register in body.registers])
    code.names = {"where": np.where, "Wait": Wait, "others": _others, **_NUMPY}
    code.delayed = _delayed_registers(body.instructions)
    starts = set(body.labels.values())
    at_label: dict[int, int] = {}
    begin = None
    for index, instruction in enumerate(body.instructions):
        single = _single(instruction)
        if begin is not None and (single or index in starts or index - begin >= BLOCK_LIMIT):
            code.nodes.append(Node("block", begin, index - begin))
            begin = None
        if index in starts:
            at_label[index] = len(code.nodes)
        if single:
            code.nodes.append(_node(instruction, index))
        elif begin is None:
            begin = index
    count = len(body.instructions)
    if begin is not None:
        code.nodes.append(Node("block", begin, count - begin))
    at_label.setdefault(count, len(code.nodes))
    code.nodes.append(Node("exit", count, 0, text="(end of the body)"))
    code.labels = {name: at_label[index] for name, index in body.labels.items()}
    for node in code.nodes:
        if node.kind == "branch":
            target = body.instructions[node.first].operands[0]
            assert isinstance(target, Symbol)
            node.target = code.labels[target.name]
    return code


def _others() -> str:
    """What a split waits for that must be joined."""
    return "the other lanes of its warp"


def _single(instruction: Instruction) -> bool:
    """Whether an instruction is a node of its own.

    One that is not known becomes one, so that it is an error only if it is reached.
    """
    if instruction.opcode in ("bra", "ret", "exit", "brx"):
        return True
    try:
        return families.find(instruction).kind == "control"
    except UnsupportedError:
        return True


def _node(instruction: Instruction, index: int) -> Node:
    guard = instruction.guard
    pair = (guard.register.index, guard.negated) if guard else None
    kind = {"bra": "branch", "ret": "exit", "exit": "exit"}.get(instruction.opcode, "control")
    return Node(kind, index, guard=pair, text=instruction.text)


def _delayed_registers(instructions: tuple[Instruction, ...]) -> frozenset[int]:
    """Registers that an instruction may fill later, and those they are copied to."""
    delayed: set[int] = set()
    copies: list[tuple[int, int]] = []
    for instruction in instructions:
        if instruction.opcode in ("tcgen05", "wgmma"):
            try:
                op = families.find(instruction)
            except UnsupportedError:
                continue
            if op.delayed:
                delayed |= set(_register_indices(instruction.operands[0]))
        elif instruction.opcode == "mov" and len(instruction.operands) == 2:
            to, source = instruction.operands
            if isinstance(to, Register) and isinstance(source, Register):
                copies.append((to.index, source.index))
    while True:
        more = {to for to, source in copies if source in delayed} - delayed
        if not more:
            return frozenset(delayed)
        delayed |= more


def _register_indices(operand: Operand) -> list[int]:
    if isinstance(operand, Register):
        return [operand.index]
    if isinstance(operand, Vector):
        return [index for item in operand.items for index in _register_indices(item)]
    if isinstance(operand, Negated):
        return _register_indices(operand.operand)
    if isinstance(operand, Pair):
        return _register_indices(operand.first) + _register_indices(operand.second)
    if isinstance(operand, Address):
        inner = _register_indices(operand.base)
        return inner + (_register_indices(operand.coordinates) if operand.coordinates else [])
    return []


def compile_block(code: Code, node: Node, *, masked: bool) -> Callable[..., Any]:
    """Generate the function of a block, for all lanes or under a mask `m`."""
    writer = _Writer(code)
    lines = []
    for index in range(node.first, node.first + node.count):
        lines += writer.plain(code.entry.body.instructions[index], index, masked=masked)
    return writer.function(f"block_{node.first}", "R, w, m", lines)


def compile_control(code: Code, node: Node) -> Callable[..., Any]:
    """Generate the function of a control instruction; True when it is done, False when it waits."""
    return _Writer(code).control(node, code.entry.body.instructions[node.first], node.first)


class _Writer:
    """Writes Python for instructions, with the handlers and constants it needs in `names`."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.instruction: Instruction

    def function(self, name: str, arguments: str, lines: list[str]) -> Callable[..., Any]:
        source = f"def {name}({arguments}):\n    " + "\n    ".join(lines or ["pass"])
        scope = self.code.names
        exec(compile(source, f"<{self.code.entry.name}>", "exec"), scope)  # noqa: S102
        function: Callable[..., Any] = scope[name]
        return function

    def _keep(self, thing: Any, prefix: str) -> str:  # noqa: ANN401
        name = f"{prefix}{len(self.code.names)}"
        self.code.names[name] = thing
        return name

    def plain(self, instruction: Instruction, index: int, *, masked: bool) -> list[str]:
        """The lines of an instruction inside a block."""
        self.instruction = instruction
        op = families.find(instruction)
        form = op.form(instruction)
        lines, mask = self._mask(instruction.guard, "m" if masked else None)
        built = op.build(form)
        handler = self._keep(built, "h")
        sources, targets = self._operands(op, form)
        copies = built is families.COPY
        if not copies or mask is not None:
            lines += self._landing(instruction)
        if op.kind == "machine":
            lines.append(f"w.at = {index}")
            sources = ["w", mask or "None", *sources]
        call = f"{handler}({', '.join(sources)})"
        if copies:
            call = sources[0]
        return lines + self._assign(targets, call, mask)

    def control(self, node: Node, instruction: Instruction, index: int) -> Callable[..., Any]:
        """The function of a control instruction."""
        self.instruction = instruction
        op = families.find(instruction)
        form = op.form(instruction)
        node.yields = op.yields
        handler = self._keep(op.build(form), "h")
        lines = [f"w.at = {index}"]
        if op.converged or "aligned" in form.flags:
            lines += [
                "if not w.converged(s):",
                "    s.wait = Wait('converge', lambda: w.converged(s), others)",
                "    return False",
            ]
        more, mask = self._mask(instruction.guard, "m")
        lines += more
        if instruction.guard:
            lines += ["if not pm.any():", "    s.pc += 1", "    return True"]
        if not op.delayed:
            lines += self._landing(instruction)
        sources, targets = self._operands(op, form)
        lines += [
            f"r_ = {handler}(w, s, {', '.join([mask or 'm', *sources])})",
            "if r_.__class__ is Wait:",
            "    s.wait = r_",
            "    return False",
            *self._assign(targets, "r_", mask, delayed=op.delayed),
            "s.pc += 1",
            "return True",
        ]
        return self.function(f"control_{index}", "R, w, s, m", lines)

    def _mask(self, guard: Guard | None, outer: str | None) -> tuple[list[str], str | None]:
        if guard is None:
            return [], outer
        predicate = f"{'~' if guard.negated else ''}R[{guard.register.index}]"
        return [f"pm = {predicate}" + (f" & {outer}" if outer else "")], "pm"

    def _landing(self, instruction: Instruction) -> list[str]:
        """Let registers that are still being filled be filled before they are used.

        A move by reference is no use: what it makes is filled together with its source.
        """
        touched = {i for operand in instruction.operands for i in _register_indices(operand)}
        late = sorted(touched & self.code.delayed)
        if not late:
            return []
        arguments = ", ".join(f"R[{index}]" for index in late)
        return [f"if w.inflight: w.land({arguments})"]

    # -- operands ---------------------------------------------------------------------------

    def _operands(self, op: Op, form: Form) -> tuple[list[str], list[tuple[Operand, str]]]:
        """Expressions of the sources; destinations with their types."""
        words = list(op.words(form))
        operands = list(self.instruction.operands)
        if sum(not word.endswith("?") for word in words) > len(operands) or len(operands) > len(
            words
        ):
            raise unsupported(
                self.instruction, f"{len(operands)} operands where `{op.name}` has {len(words)}"
            )
        sources: list[str] = []
        targets: list[tuple[Operand, str]] = []
        for word, operand in zip(words, operands, strict=False):
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
            return [(pair.first, _type(first, form)), (pair.second, _type(second, form))]
        if word.startswith("{"):
            kind = _type(word[1:-1], form)
            items = operand.items if isinstance(operand, Vector) else (operand,)
            return [(item, kind) for item in items]
        return [(operand, _type(word, form))]

    def _source(self, word: str, operand: Operand, form: Form) -> str:
        if word.startswith("@"):
            return self.address(operand, word[1:] or form.space)
        if word.startswith("{"):
            kind = _type(word[1:-1], form)
            items = operand.items if isinstance(operand, Vector) else (operand,)
            return "[" + ", ".join(self.value(item, kind) for item in items) + "]"
        return self.value(operand, _type(word, form))

    def _tensor_address(self, space: str, operand: Operand) -> list[str]:
        """`[map, {x, y}]`: the address of the map, and the list of coordinates."""
        if not isinstance(operand, Address) or operand.coordinates is None:
            raise unsupported(self.instruction, "coordinates are expected")
        items = (self.value(item, "s32") for item in operand.coordinates.items)
        return [self.address(operand, space), "[" + ", ".join(items) + "]"]

    def constant(self, bits: int, width: int) -> str:
        """The name of a constant with these bits in every lane."""
        key = (bits, width)
        if key not in self.code.constants:
            self.code.constants[key] = self._keep(constant(bits, width), "k")
        return self.code.constants[key]

    def value(self, operand: Operand, kind: str) -> str:
        """An expression for a source operand, as lanes of type `kind`."""
        if isinstance(operand, Register):
            return _as(f"R[{operand.index}]", operand.bits, kind)
        if isinstance(operand, Immediate):
            width = BITS[kind]
            return _view(self.constant(literal_bits(operand, kind), width), kind)
        if isinstance(operand, Special):
            bits = 64 if operand.name in ("clock64", "globaltimer") else 32
            bits = 1 if operand.name == "is_explicit_cluster" else bits
            return _as(f"w.special({operand.name!r})", bits, kind)
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
            wide = _as(f"R[{base.index}]", base.bits, "u64")
            if base.bits == 64 and space in ("shared", "tensor"):
                wide = f"({wide} & {self.constant(0xFFFF_FFFF, 64)})"
            if operand.offset:
                offset = self.constant(operand.offset & (2**64 - 1), 64)
                wide = f"({wide} + {offset})"
            return wide
        if isinstance(base, Immediate):
            return self.constant((base.value + operand.offset) & (2**64 - 1), 64)
        if "@" in base.name and space == "param":
            return repr((base.name.split("@")[0], base.offset + operand.offset))
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
            raise unsupported(self.instruction, "a destination must be a register")
        place = f"R[{operand.index}]"
        value = _stored(value, kind, operand.bits)
        if mask is None or delayed:
            return f"{place} = {value}"
        lanes = f"{mask}[:, None]" if operand.bits == 128 else mask
        return f"{place} = where({lanes}, {value}, {place})"


def _type(word: str, form: Form) -> str:
    """The PTX type an operand word stands for."""
    if word == "T":
        return form.type
    if word == "W":
        return form.type[0] + str(2 * form.bits)
    if word[0] == "T" and word[1:].isdigit():
        return form.types[int(word[1:])]
    return word


def _view(name: str, kind: str) -> str:
    """Unsigned lanes seen as lanes of type `kind`."""
    if kind[0] in _VIEW and kind in BITS and kind[1:].isdigit():
        return f"{name}.view({_VIEW[kind[0]]}{BITS[kind] // 8})"
    return name


def _as(name: str, bits: int, kind: str) -> str:
    """A register of some width read as type `kind`; a wider register gives its low bits."""
    width = BITS[kind]
    if bits != width and 1 not in (bits, width):
        name = f"{name}.astype(u{width // 8})"
    return _view(name, kind)


def _stored(value: str, kind: str, bits: int) -> str:
    """A value of type `kind` as a register of `bits`; signed types fill with their sign."""
    width = BITS[kind]
    letter = _VIEW.get(kind[0], "u") if kind[1:].isdigit() else "u"
    if bits == 1 or width == 1 or bits == 128:
        return value
    if width == bits:
        return value if letter == "u" else f"{value}.view(u{bits // 8})"
    if letter == "i":
        return f"{value}.astype(i{bits // 8}).view(u{bits // 8})"
    if letter == "f":
        return f"{value}.view(u{width // 8}).astype(u{bits // 8})"
    return f"{value}.astype(u{bits // 8})"
