"""A launch's counts on the emulator: instructions, bytes, multiplications. Never a time.

Give `Counts.join` to a run as one of its checks. Instructions are those of warps, each by the unit
that does its work. Bytes are those that an engine moves: a thread's, a copy's, or an operand's that
a tensor core reads itself; a byte that is read twice counts twice. Work of tensor cores is counted
as they do it, padding and all: multiplications of two numbers, each with its addition.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from kernelpack.emulator.events import Access, Began, Bus, Ended, Issued, Ran

LANES_OF_A_CELL = 16
"""A cell of tensor memory is a column of so many lanes."""
WARPS_OF_WGMMA = 4
"""Each of them issues its part of one `wgmma`."""

THREADS = "threads"
UNITS = (
    ("tensor", r"mma|wgmma\.mma_async|tcgen05\.mma"),
    ("copies", r"cp|tcgen05\.(cp|ld|st|shift)|st\.async|red\.async|multimem"),
    ("memory", r"ldu?|st|atom|red|ldmatrix|stmatrix|prefetch|prefetchu|discard|applypriority"),
    ("barriers", r"mbarrier|bar|barrier|fence|membar|wgmma|tcgen05|griddepcontrol|elect|nanosleep"),
    ("lanes", r"vote|match|shfl|redux|activemask"),
    ("control", r"bra|brx|ret|exit|call|trap|setmaxnreg|clusterlaunchcontrol"),
    ("special", r"ex2|lg2|rcp|rsqrt|sqrt|sin|cos|tanh"),
)
"""Units by the beginning of an opcode, the first that fits; the rest is arithmetic."""
_UNITS = tuple((name, re.compile(rf"(?:{words})(?:\.|$)")) for name, words in UNITS)
_FLOAT = re.compile(r"\.(?:f|bf|e\dm\d|tf)\d*")
_SHAPE = re.compile(r"\.m(\d+)n(\d+)k(\d+)")
_KIND = re.compile(r"\.kind::(\w+)")
DEPTHS = {"f16": 16, "tf32": 8, "i8": 32, "f8f6f4": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
"""K of one `tcgen05.mma` by its kind (PTX ISA, 5th generation TensorCore, shapes)."""


class Step(Protocol):
    """An instruction."""

    @property
    def opcode(self) -> str:
        """`ld`, `tcgen05` and so on."""

    @property
    def modifiers(self) -> tuple[str, ...]:
        """The modifiers of the opcode, between dots."""


@dataclass(slots=True)
class Counts:
    """Listens to a run.

    Attributes:
        moved: bytes by (engine, `read` or `write`, kind of memory).
        operations: asynchronous operations by engine.
        products: multiplications of tensor cores that run beside the warps.

    """

    moved: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    products: int = 0
    _edges: Counter[int] = field(default_factory=Counter)
    _labels: dict[int, str] = field(default_factory=dict)
    _working: list[str] = field(default_factory=list)

    def join(self, _report: object) -> "Counts":
        """Itself, as the check that a run asks for; it reports nothing."""
        return self

    def listen(self, bus: Bus) -> None:
        """Hear of what is run and moved."""
        bus.listen(Ran, self.on_run)
        bus.listen(Issued, self.on_issue)
        bus.listen(Began, self.on_begin)
        bus.listen(Ended, self.on_end)
        bus.listen(Access, self.on_access)

    def on_run(self, event: Ran) -> None:
        """Instructions in a row: their first, and the one after their last."""
        self._edges[event.first] += 1
        self._edges[event.first + event.count] -= 1

    def on_issue(self, event: Issued) -> None:
        """An operation that a unit will do."""
        self._labels[event.operation] = event.label
        self.operations[engine(event.label)] += 1
        shape = _SHAPE.search(event.label)
        if shape and event.label.startswith("wgmma"):
            self.products += _volume(shape) // WARPS_OF_WGMMA

    def on_begin(self, event: Began) -> None:
        """Accesses until its end are the operation's."""
        self._working.append(self._labels.pop(event.operation))

    def on_end(self, _event: Ended) -> None:
        """An operation has had its effect."""
        self._working.pop()

    def on_access(self, event: Access) -> None:
        """Bytes that are read or written."""
        label = self._working[-1] if self._working else ""
        if event.mbarrier or (not label and event.unit.kind == "tensor"):
            return  # a wait, or an allocation
        kind = _KIND.search(label)
        if kind and event.unit.kind == "tensor" and event.write:
            elements = len(np.unique(event.cells)) * LANES_OF_A_CELL
            self.products += elements * DEPTHS.get(kind[1], 0)
        who = engine(label) if label else THREADS
        self.moved[who, "write" if event.write else "read", event.unit.kind] += _bytes(event)

    def executions(self, count: int) -> list[int]:
        """How often each of an entry's `count` instructions was run by a warp."""
        changes = np.zeros(count + 1, np.int64)
        for at, change in self._edges.items():
            changes[at] += change
        return [int(number) for number in np.cumsum(changes)[:count]]


def by_unit(instructions: Sequence[Step], executions: Sequence[int]) -> dict[str, int]:
    """Warp instructions by the unit that does their work, the busiest first."""
    found: Counter[str] = Counter()
    for instruction, times in zip(instructions, executions, strict=True):
        found[unit(instruction)] += times
    return {name: times for name, times in found.most_common() if times}


def unit(instruction: Step) -> str:
    """The unit that does an instruction's work."""
    words = ".".join((instruction.opcode, *instruction.modifiers))
    for name, begins in _UNITS:
        if begins.match(words):
            return name
    return "float" if _FLOAT.search(words) else "integer"


def products_of_warps(instructions: Sequence[Step], executions: Sequence[int]) -> int:
    """Multiplications of `mma`, which a warp waits for."""
    return sum(
        times * _volume(shape)
        for instruction, times in zip(instructions, executions, strict=True)
        if instruction.opcode == "mma"
        and (shape := _SHAPE.search("." + ".".join(instruction.modifiers)))
    )


def engine(label: str) -> str:
    """The engine of an operation: the words of its instruction that name no form."""
    words = re.split(r"[\s:]", label, maxsplit=1)[0].split(".")
    named = [w for w in words if w in _NAMED]
    return ".".join(named) or words[0]


_NAMED = {
    *("cp", "async", "bulk", "tensor", "reduce", "prefetch", "st", "red", "wgmma", "mma_async"),
    *("tcgen05", "mma", "ld", "shift", "commit", "multimem"),
}


def _volume(shape: re.Match[str]) -> int:
    return int(shape[1]) * int(shape[2]) * int(shape[3])


def _bytes(event: Access) -> int:
    """Of the cells accessed; a cell of tensor memory is 4 bytes of each of its lanes."""
    if event.unit.kind == "tensor":
        return len(event.cells) * 4 * LANES_OF_A_CELL
    if isinstance(event.bytes_mask, int):
        return len(event.cells) * event.bytes_mask.bit_count()
    return int(np.unpackbits(event.bytes_mask).sum())
