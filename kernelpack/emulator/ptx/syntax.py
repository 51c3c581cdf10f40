"""A parsed PTX module: values only."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

BITS: Mapping[str, int] = {
    "pred": 1,
    **dict.fromkeys(("b8", "u8", "s8"), 8),
    **dict.fromkeys(("b16", "u16", "s16", "f16", "bf16"), 16),
    **dict.fromkeys(("b32", "u32", "s32", "f32", "f16x2", "bf16x2", "u16x2", "s16x2"), 32),
    **dict.fromkeys(("b64", "u64", "s64", "f64", "f32x2"), 64),
    "b128": 128,
}
"""Fundamental and packed types → bits (PTX ISA 5.2)."""


@dataclass(frozen=True, slots=True)
class Register:
    """A virtual register: its row in the register file and its width in bits (1 = predicate)."""

    name: str
    index: int
    bits: int


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant. `kind` says how it was written: `int`, `f32` or `f64` (then `value` is bits)."""

    kind: str
    value: int


@dataclass(frozen=True, slots=True)
class Special:
    """A special register such as `%tid.x`, without its `%`."""

    name: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable's address plus a byte offset; also a label or function where one is expected."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Negated:
    """`!p` or `-r`."""

    operand: "Register | Special"


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, …}`."""

    items: tuple["Operand", ...]


@dataclass(frozen=True, slots=True)
class Address:
    """`[base+offset]`, or `[base, {coordinates}]` of a tensor copy."""

    base: "Register | Symbol | Immediate"
    offset: int = 0
    coordinates: Vector | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """`d|p`: two destinations."""

    first: "Operand"
    second: "Operand"


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`: a destination that is thrown away."""


Operand: TypeAlias = (
    Register | Immediate | Special | Symbol | Negated | Vector | Address | Pair | Sink
)


@dataclass(frozen=True, slots=True)
class Location:
    """A line of the source, and where the function that holds it was inlined."""

    file: str
    line: int
    inlined_at: "Location | None" = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def calls(self) -> "Iterator[Location]":
        """The line itself, that of the call which brought it there, and so on up to the kernel."""
        at: Location | None = self
        while at is not None:
            yield at
            at = at.inlined_at

    @property
    def place(self) -> str:
        """Where a person should look: the line in the kernel's own file that leads here.

        Where that is the call of a header's function which calls another, the line in that header
        follows: `kernel.cu.j2:127 (kp/ptx/mbarrier.cuh:72)`.
        """
        calls = list(self.calls)
        own = next(at for at in calls if at.file == calls[-1].file)
        near = calls[:2][-1]
        return str(own) if own in calls[:2] else f"{own} ({near})"


@dataclass(frozen=True, slots=True)
class Guard:
    """`@p` or `@!p`."""

    register: Register
    negated: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `line` is its line in the PTX, `location` its line in the source."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    text: str
    line: int
    location: Location | None

    @property
    def place(self) -> str:
        """Where a person should look: the kernel's source line, else the PTX line."""
        return self.location.place if self.location else f"ptx:{self.line}"


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable. `initial` is its bytes, or symbols where an address is stored.

    `type` is that of an element, where it is an array: `u32`, `b8`.
    """

    name: str
    space: str
    alignment: int
    size: int
    initial: bytes = b""
    relocations: tuple[tuple[int, Symbol], ...] = ()
    external: bool = False
    type: str = "b8"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel parameter and its byte offset in the parameter block (PTX ISA 5.1.6.1).

    `type` is that of an element, where it is an array.
    """

    name: str
    offset: int
    size: int
    alignment: int
    type: str = "b8"


@dataclass(frozen=True, slots=True)
class Callee:
    """A function in a body: where it begins, and its registers, from the first to before the last.

    `results` and `parameters` are the names under which the body knows them.
    """

    name: str
    start: int
    registers: range
    results: tuple[str, ...]
    parameters: tuple[str, ...]
    has_locals: bool


@dataclass(frozen=True, slots=True)
class Body:
    """The code of an entry: instructions in order, the label → index map, registers, variables."""

    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]
    registers: tuple[Register, ...]
    variables: tuple[Variable, ...]
    branch_targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    callees: Mapping[str, Callee] = field(default_factory=dict)
    """Functions that were not inlined, by name; their instructions follow the entry's."""
