"""An entry's instructions → nodes that a warp runs.

Straight-line code becomes blocks, for which `generate` makes two functions each: for a warp that
runs with all its lanes and for one under a mask. Instructions that can wait or branch are nodes
alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from kernelpack.emulator.faults import UnsupportedError
from kernelpack.emulator.machine.lanes import Lanes
from kernelpack.emulator.ptx.calls import target
from kernelpack.emulator.ptx.link import Layout
from kernelpack.emulator.ptx.named import register_indices, symbol_names
from kernelpack.emulator.ptx.parser import Entry
from kernelpack.emulator.ptx.syntax import (
    Body,
    Instruction,
    Register,
    Symbol,
)
from kernelpack.emulator.semantics import families
from kernelpack.emulator.semantics.table import wrong
from kernelpack.emulator.translate.unread import without_unread

BLOCK_LIMIT = 48
"""Instructions in one generated function."""


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
    targets: tuple[int, ...] = ()
    """Where `brx.idx` may lead, by index."""
    guard: tuple[int, bool] | None = None
    yields: bool = False
    text: str = ""


@dataclass(slots=True)
class Code:
    """The nodes of an entry; `pc_of` gives the node at which a label is."""

    entry: Entry
    layout: Layout
    nodes: list[Node] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    delayed: frozenset[int] = frozenset()
    constants: dict[tuple[int, int, str], Lanes] = field(default_factory=dict)
    """Bits, width, and the kind of number they are seen as → such a constant."""
    starts: dict[str, int] = field(default_factory=dict)
    """A function that was not inlined → its first node."""
    behind: dict[int, frozenset[int]] = field(default_factory=dict)
    """A node → those that lie past it for good (see `paths`)."""
    compiled: Any = None
    """What the compiled engine has read of it (see `emulator.core`)."""


_KEPT = 64
_TRANSLATED: dict[tuple[Entry, tuple[object, ...]], Code] = {}
"""Code by entry and layout: it holds no state of a run, and generating it takes the longest."""


def translate(entry: Entry, layout: Layout) -> Code:
    """Cut an entry into nodes. Blocks are generated when they are first run, and kept."""
    key = (entry, layout.key(_named(entry)))
    if key not in _TRANSLATED:
        while len(_TRANSLATED) >= _KEPT:
            del _TRANSLATED[next(iter(_TRANSLATED))]
        body = without_unread(entry.body)
        _TRANSLATED[key] = _translate(replace(entry, read=lambda: body), layout)
    return _TRANSLATED[key]


@lru_cache(maxsize=_KEPT)
def _named(entry: Entry) -> frozenset[str]:
    """The symbols that its code names."""
    operands = (operand for each in entry.body.instructions for operand in each.operands)
    return frozenset(name for operand in operands for name in symbol_names(operand))


def _translate(entry: Entry, layout: Layout) -> Code:
    body = entry.body
    code = Code(entry, layout, widths=[register.bits for register in body.registers])
    code.delayed = _delayed_registers(body.instructions)
    begins = {callee.start: name for name, callee in body.callees.items()}
    starts = {*body.labels.values(), *begins}
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
            code.nodes.append(_node(body, instruction, index))
        elif begin is None:
            begin = index
    count = len(body.instructions)
    if begin is not None:
        code.nodes.append(Node("block", begin, count - begin))
    at_label.setdefault(count, len(code.nodes))
    code.nodes.append(Node("exit", count, 0, text="(end of the body)"))
    code.labels = {name: at_label[index] for name, index in body.labels.items()}
    code.starts = {name: at_label[index] for index, name in begins.items()}
    _link(code)
    return code


def _link(code: Code) -> None:
    """Say of each node where it leads."""
    body, calls_at = (
        code.entry.body,
        [n for n, node in enumerate(code.nodes) if node.kind == "call"],
    )
    back = tuple(at + 1 for at in calls_at)
    for node in code.nodes:
        if node.kind == "branch":
            label = body.instructions[node.first].operands[0]
            assert isinstance(label, Symbol)
            node.target = code.labels[label.name]
        elif node.kind == "table":
            node.targets = _targets(code, body.instructions[node.first])
        elif node.kind == "call":
            name = target(body.instructions[node.first])
            node.targets = tuple(code.starts.values()) if name is None else (code.starts[name],)
        elif node.kind == "return":
            node.targets = back


def _targets(code: Code, instruction: Instruction) -> tuple[int, ...]:
    """The nodes that a `brx.idx` names.

    Raises:
        PtxError: it has no list of targets.
    """
    name = instruction.operands[1] if len(instruction.operands) == 2 else None
    names = code.entry.body.branch_targets.get(name.name) if isinstance(name, Symbol) else None
    if names is None or not isinstance(instruction.operands[0], Register):
        raise wrong(instruction, "no index and `.branchtargets`")
    return tuple(code.labels[each] for each in names)


def _single(instruction: Instruction) -> bool:
    """Whether an instruction is a node of its own.

    One that is not known becomes one, so that it is an error only if it is reached.
    """
    if instruction.opcode in _KINDS:
        return True
    try:
        return families.find(instruction).kind == "control"
    except UnsupportedError:
        return True


_KINDS = {"bra": "branch", "ret": "exit", "exit": "exit", "brx": "table", "return": "return"}


def kind_of(body: Body, instruction: Instruction) -> str:
    """Where it leads, or `control` where a row of the table says what it does."""
    if instruction.opcode == "call" and body.callees:
        name = target(instruction)
        if name is None or name in body.callees:
            return "call"
    return _KINDS.get(instruction.opcode, "control")


def _node(body: Body, instruction: Instruction, index: int) -> Node:
    guard = instruction.guard
    pair = (guard.register.index, guard.negated) if guard else None
    kind = kind_of(body, instruction)
    return Node(kind, index, guard=pair, text=instruction.text)


def _delayed_registers(instructions: tuple[Instruction, ...]) -> frozenset[int]:
    """Registers that an instruction may fill later, and those they are copied to."""
    delayed: set[int] = set()
    copies: dict[int, list[int]] = {}
    for instruction in instructions:
        if instruction.opcode in ("tcgen05", "wgmma"):
            try:
                op = families.find(instruction)
            except UnsupportedError:
                continue
            if op.delayed:
                delayed |= {i for to in instruction.operands[:1] for i in register_indices(to)}
        elif instruction.opcode == "mov" and len(instruction.operands) == 2:
            to, source = instruction.operands
            if isinstance(to, Register) and isinstance(source, Register):
                copies.setdefault(source.index, []).append(to.index)
    ahead = list(delayed)
    while ahead:
        more = [to for to in copies.pop(ahead.pop(), ()) if to not in delayed]
        delayed.update(more)
        ahead += more
    return frozenset(delayed)
