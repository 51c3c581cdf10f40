"""The table of instructions.

An `Op` is one row: a name (the opcode, with leading modifiers where these make it another
instruction: `mbarrier.arrive`), its section in PTX ISA 9.1, the types and modifiers it takes, its
operands, and `build`, which makes from a `Form` the handler that runs it.

Operands are described by short words, destinations first:

=========  ===================================================================================
`T`        a value of the instruction's last type; `T0`, `T1` …: of its first, second type
`B`        the bits of a `T`, unsigned: where the sign makes no difference to the result
`W`        a value of twice the width of `T`;  `u32`, `b64`, `pred` …: a value of that type
`{T}`      a vector (or a single value) of that type: the handler gets or returns a list
`@`        an address in the space the modifiers name;  `@shared`, `@tensor` …: in that space
`@s+`      an address in space s with coordinates after it: two values, the second a list
`#`        an integer known when the kernel is assembled: `form.constant(i)` gives it
`~`        anything: the handler's builder looks at it itself
=========  ===================================================================================

`=` before a word makes it a destination (`=T|pred`: a pair of two), `?` after it optional.

Three kinds of handler: *lanes*: values in, values out; *machine*: `(warp, mask, *values)`, mask
None for all 32 lanes; *control*: `(warp, split, mask, *values)`, which may return a `Wait` to be
asked again later.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kernelpack.emulator.faults import PtxError, UnsupportedError
from kernelpack.emulator.machine.lanes import Lanes
from kernelpack.emulator.ptx.syntax import BITS, Immediate, Instruction, Vector

Handler: TypeAlias = Callable[..., Any]
Operands: TypeAlias = tuple[str, ...]

SPACES = ("global", "shared", "local", "param", "const")
INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
WORDS = ("u16", "s16", "u32", "s32", "u64", "s64")
RAW = ("b8", "b16", "b32", "b64", "b128")
FLOATS = ("f16", "bf16", "f32", "f64")
PACKED = ("f16x2", "bf16x2", "f32x2")
_NARROW = (
    *("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2", "ue8m0x2", "s2f6x2", "tf32"),
    *("e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4", "e2m1x4", "u16x2", "s16x2"),
    *("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "ue8m0", "ue4m3", "u4", "s4", "b1"),
)
TYPES = frozenset((*BITS, *_NARROW))
"""Every modifier that is a type."""


@dataclass(frozen=True, slots=True)
class Form:
    """One instruction, its modifiers sorted: the types in order, the rest as flags."""

    instruction: Instruction
    types: tuple[str, ...]
    flags: frozenset[str]

    @property
    def type(self) -> str:
        """The last type."""
        return self.types[-1] if self.types else "b32"

    @property
    def bits(self) -> int:
        """The width of the last type."""
        return BITS[self.type]

    def type_of(self, word: str) -> str:
        """The PTX type that a word for an operand names, such as `T1` or `W`."""
        if word == "T":
            return self.type
        if word == "B":
            return f"b{self.bits}"
        if word == "W":
            return self.type[0] + str(2 * self.bits)
        if word[0] == "T" and word[1:].isdigit():
            return self.types[int(word[1:])]
        return word

    def has(self, *flags: str) -> bool:
        """Whether any of these modifiers is there."""
        return any(flag in self.flags for flag in flags)

    def one_of(self, flags: Iterable[str], default: str = "") -> str:
        """The one of these modifiers that is there, else the default."""
        return next((flag for flag in flags if flag in self.flags), default)

    def starting(self, prefix: str) -> str:
        """The modifier that begins with this, without it; empty when there is none."""
        return next((f.removeprefix(prefix) for f in self.flags if f.startswith(prefix)), "")

    @property
    def space(self) -> str:
        """The state space of the addresses; `generic` when no modifier names one."""
        for modifier in self.instruction.modifiers:
            head = modifier.split("::")[0]
            if head in SPACES:
                return head
        return "generic"

    def constant(self, position: int, default: int | None = None) -> int:
        """The integer written as operand `position`."""
        operands = self.instruction.operands
        if position >= len(operands) and default is not None:
            return default
        operand = operands[position] if position < len(operands) else None
        if not isinstance(operand, Immediate):
            raise unsupported(self.instruction, f"operand {position + 1} must be a constant")
        return operand.value

    def length(self, position: int) -> int:
        """How many values operand `position` holds."""
        operand = self.instruction.operands[position]
        return len(operand.items) if isinstance(operand, Vector) else 1

    def expect(self, position: int, count: int) -> None:
        """Refuse an operand that does not hold so many values.

        Raises:
            PtxError: says how many there are.
        """
        found = self.length(position)
        if found != count:
            raise wrong(self.instruction, f"{found} values where {count} are expected")

    def unsupported(self, what: str) -> UnsupportedError:
        """The error for a form that is not modelled."""
        return unsupported(self.instruction, what)


@dataclass(frozen=True, slots=True)
class Op:
    """One row of the table."""

    name: str
    kind: str
    section: str
    build: Callable[[Form], Handler]
    operands: Operands | Callable[[Form], Operands]
    types: frozenset[str]
    flags: frozenset[str]
    converged: bool = False
    """Needs every lane of the warp that has not exited (`.aligned`)."""
    yields: bool = False
    """After it the warp lets the others run."""
    delayed: bool = False
    """Its destinations are filled later."""

    def form(self, instruction: Instruction) -> Form:
        """Sort an instruction's modifiers.

        Raises:
            UnsupportedError: a modifier or type this row does not list.
        """
        rest = instruction.modifiers[self.name.count(".") :]
        types, flags = [], []
        for modifier in rest:
            if modifier in TYPES and modifier in self.types:
                types.append(modifier)
            elif modifier in self.flags:
                flags.append(modifier)
            else:
                raise unsupported(instruction, f"`.{modifier}` of `{self.name}` is not modelled")
        return Form(instruction, tuple(types), frozenset(flags))

    def words(self, form: Form) -> Operands:
        """The words of its operands."""
        return self.operands(form) if callable(self.operands) else self.operands


def unsupported(instruction: Instruction, what: str) -> UnsupportedError:
    """The error that names an instruction which is not modelled, and where it is."""
    return UnsupportedError(f"{what}: `{instruction.text}`", where=instruction.place)


def wrong(instruction: Instruction, what: str) -> PtxError:
    """The error that names an instruction which no assembler accepts, and where it is."""
    return PtxError(f"{what}: `{instruction.text[:200]}`", where=instruction.place)


@dataclass(slots=True)
class Table:
    """Rows by name."""

    rows: dict[str, Op] = field(default_factory=dict)
    found: dict[tuple[str, tuple[str, ...]], Op] = field(default_factory=dict)
    """Form looked for, by opcode and modifiers."""

    def add(self, op: Op) -> None:
        """Add a row; a name is added once."""
        assert op.name not in self.rows, op.name
        self.rows[op.name] = op
        self.found.clear()

    def find(self, instruction: Instruction) -> Op:
        """The row with the longest name that fits.

        Raises:
            UnsupportedError: there is none.
        """
        key = instruction.opcode, instruction.modifiers
        if key in self.found:
            return self.found[key]
        parts = (instruction.opcode, *instruction.modifiers)
        for length in range(len(parts), 0, -1):
            row = self.rows.get(".".join(parts[:length]))
            if row is not None:
                self.found[key] = row
                return row
        raise unsupported(instruction, f"opcode `{instruction.opcode}` is not modelled")


TABLE = Table()
"""The table, filled by the modules of the families when `semantics.families` is imported."""

Build: TypeAlias = Callable[[Form], Handler]


def _row(kind: str, names: str, section: str, **about: Any) -> Callable[[Build], Build]:  # noqa: ANN401
    def add(build: Build) -> Build:
        for name in names.split():
            TABLE.add(
                Op(
                    name=name,
                    kind=kind,
                    section=section,
                    build=build,
                    operands=about["operands"],
                    types=frozenset(about["types"]),
                    flags=frozenset(about["flags"]),
                    converged=about.get("converged", False),
                    yields=about.get("yields", False),
                    delayed=about.get("delayed", False),
                )
            )
        return build

    return add


def lanes(
    names: str,
    section: str,
    *,
    operands: Operands | Callable[[Form], Operands],
    types: Iterable[str] = (),
    flags: Iterable[str] = (),
) -> Callable[[Build], Build]:
    """Rows whose handler takes and returns values only."""
    return _row("lanes", names, section, operands=operands, types=types, flags=flags)


def machine(
    names: str,
    section: str,
    *,
    operands: Operands | Callable[[Form], Operands],
    types: Iterable[str] = (),
    flags: Iterable[str] = (),
) -> Callable[[Build], Build]:
    """Rows whose handler sees the warp and the mask, and never waits."""
    return _row("machine", names, section, operands=operands, types=types, flags=flags)


def control(
    names: str,
    section: str,
    *,
    operands: Operands | Callable[[Form], Operands] = (),
    types: Iterable[str] = (),
    flags: Iterable[str] = (),
    converged: bool = False,
    yields: bool = False,
    delayed: bool = False,
) -> Callable[[Build], Build]:
    """Rows whose handler sees the split and may wait."""
    return _row(
        "control",
        names,
        section,
        operands=operands,
        types=types,
        flags=flags,
        converged=converged,
        yields=yields,
        delayed=delayed,
    )


__all__ = ["TABLE", "Form", "Handler", "Lanes", "Op", "Operands", "Table", "control", "lanes"]
