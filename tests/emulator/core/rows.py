"""Random instructions of a row of the table, and kernels made of them.

A kernel loads the operands of each instruction, and its destination too, then runs it under a guard
and stores the destination: bytes that both engines must leave alike.
"""

import random
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from kernelpack.emulator.core import attempt
from kernelpack.emulator.events import Bus
from kernelpack.emulator.faults import Level
from kernelpack.emulator.machine.bad_access import reporter
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.prepare import Dependent, prepare
from kernelpack.emulator.ptx.parser import parse
from kernelpack.emulator.ptx.syntax import BITS, Instruction
from kernelpack.emulator.schedule import Schedule
from kernelpack.emulator.semantics import families
from kernelpack.emulator.semantics.table import Form, Op
from kernelpack.emulator.translate.fits import STUMBLES, check_operands
from kernelpack.errors import KernelpackError
from kernelpack.spec.launch import Dim3, Plan, Pointer
from tests.emulator.core.compare import copied, on_core, on_python
from tests.emulator.core.values import bits_of

LANES = 32
_SLOT = 16 * LANES
"""Bytes of an operand of all lanes."""
_TWO_TYPES = {"cvt", "set", "slct", "dp4a", "dp2a"}
_AS_WRITTEN = {
    "cvt.pack": [f"sat.{sign}{bits}.s32.b32" for sign in "us" for bits in (2, 4, 8)]
    + ["sat.u16.s32", "sat.s16.s32"]
}
"""Modifiers that go together in these ways alone."""
_MIXED = {"add", "sub", "fma"}
_REGISTERS = {1: "p", 16: "h", 32: "r", 64: "d", 128: "q"}


@dataclass(frozen=True)
class Made:
    """An instruction: its opcode with modifiers, and the types of what it takes and gives."""

    name: str
    targets: tuple[str, ...]
    sources: tuple[str, ...]
    table: int | None = None
    """The last operand of a `lop3`."""

    def __str__(self) -> str:
        return f"{self.name} {', '.join(self.targets)} <- {', '.join(self.sources)}"


def kind_of(word: str, form: Form) -> str:
    """The type an operand word stands for."""
    if word in ("T", "B", "W"):
        kind = form.type if word != "W" else form.type[0] + str(2 * form.bits)
        return f"b{form.bits}" if word == "B" else kind
    return form.types[int(word[1:])] if word[0] == "T" else word


def _instruction(text: str) -> Instruction:
    """Parse one instruction whose operands are any registers."""
    module = f"""
.version 9.1
.target sm_100a
.address_size 64
.visible .entry one() {{ .reg .b32 %x; .reg .pred %p, %q; {text} ret; }}"""
    return parse(module).entry("one").body.instructions[0]


_APART = (
    frozenset(("rn", "rz", "rm", "rp", "rna", "rs", "rni", "rzi", "rmi", "rpi")),
    frozenset(("finite", "infinite", "number", "notanumber", "normal", "subnormal")),
    frozenset(("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "num", "nan",
               "equ", "neu", "ltu", "leu", "gtu", "geu")),
    frozenset(("and", "or", "xor")),
    frozenset(("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")),
    frozenset(("clamp", "wrap")), frozenset(("l", "r")), frozenset(("sat", "satfinite", "relu")),
    frozenset(("global", "shared", "local", "param", "const", "shared::cta", "shared::cluster",
               "param::entry")),
)  # fmt: skip
"""Modifiers of which an instruction has one at most."""


_PARTS = frozenset(("lo", "hi", "wide"))
"""The same, of a product; to a comparison two of them are relations."""


def _flags(op: Op, draw: random.Random) -> list[str]:
    """Some of a row's modifiers that go together; a comparison always says which one it is."""
    compares = "eq" in op.flags
    parts = [] if compares else [_PARTS]
    groups = [sorted(group & op.flags) for group in (*_APART, *parts) if group & op.flags]
    others = op.flags - frozenset().union(*_APART, _PARTS)
    chosen = [draw.choice(group) for group in groups if "eq" in group or draw.random() < 0.5]
    return chosen + [flag for flag in sorted(others) if draw.random() < 0.3]


def drawn(op: Op, draw: random.Random) -> Made | None:
    """A random form of a row; None where the row does not take what was drawn."""
    if op.name in _AS_WRITTEN:
        return of_text(f"{op.name}.{draw.choice(_AS_WRITTEN[op.name])}")
    count = 2 if op.name in _TWO_TYPES or (op.name in _MIXED and draw.random() < 0.1) else 1
    types = [draw.choice(sorted(op.types)) for _ in range(count if op.types else 0)]
    name = ".".join([op.name, *_flags(op, draw), *types])
    if "wide" in name and types[0][0] == "f":
        return None
    first = "%p|%q" if op.name == "setp" and draw.random() < 0.3 else "%x"
    table = draw.getrandbits(8) if op.name == "lop3" else None
    sources = draw.choice((2, 2, 3)) if op.name in ("min", "max") else None
    return _fitting(name, first, (1, 2, 3, 4) if sources is None else (sources,), table)


def of_text(name: str) -> Made:
    """A form by its opcode and modifiers."""
    widens = name.startswith("cvt") and name.endswith("3x2")
    made = _fitting(name, "%x", (1,) if widens else (2, 3, 1, 4), None)
    assert made, name
    return made


def _fitting(name: str, first: str, counts: tuple[int, ...], table: int | None) -> Made | None:
    """A form with the first number of sources that fits it."""
    for count in counts:
        operands = ["%x"] * count + ([] if table is None else [str(table)])
        with suppress(KernelpackError, *STUMBLES):
            instruction = _instruction(f"{name} {first}, {', '.join(operands)};")
            return _made(families.find(instruction), instruction, name, table)
    return None


def _made(op: Op, instruction: Instruction, name: str, table: int | None) -> Made | None:
    form = op.form(instruction)
    words = op.words(form)
    check_operands(op, form, words)
    op.build(form)
    words = words[: len(instruction.operands)]
    targets = [k for w in words if w[0] == "=" for k in w[1:].rstrip("?").split("|")]
    sources = [w.rstrip("?") for w in words if w[0] not in "=#"]
    types = [kind_of(w, form) for w in (*targets, *sources)]
    if any(kind not in BITS or (BITS[kind] == 8 and op.name != "cvt") for kind in types):
        return None
    return Made(name, tuple(types[: len(targets)]), tuple(types[len(targets) :]), table)


class Kernel:
    """Instructions as one kernel; `draw` makes immediates, guards and inputs."""

    def __init__(self, made: list[Made], draw: random.Random, *, finite: bool = False) -> None:
        self.made, self.draw, self.finite = made, draw, finite
        self.lines: list[str] = []
        self.count = dict.fromkeys(_REGISTERS, 0)
        self.inputs: list[np.ndarray] = []
        self.places: list[int] = []
        """Of each instruction, how many outputs come before it."""
        self.outputs = 0
        for one in made:
            self._add(one)

    def _register(self, kind: str, *, wider: bool = False) -> str:
        """A new register for a type; those of a conversion may be wider than it."""
        bits = max(BITS[kind], 16) if BITS[kind] > 1 else 1
        if wider and 1 < bits < 64:
            bits *= self.draw.choice((1, 1, 2))
        self.count[bits] += 1
        return f"%{_REGISTERS[bits]}{self.count[bits] - 1}"

    def _loaded(self, kind: str, *, wider: bool = False) -> str:
        """A register with input values."""
        register = self._register(kind, wider=wider)
        self._load(register, [bits_of(kind, self.draw, finite=self.finite) for _ in range(LANES)])
        return register

    def _load(self, register: str, values: list[int]) -> None:
        raw = b"".join(value.to_bytes(16, "little") for value in values)
        place = len(self.inputs) * _SLOT
        self.inputs.append(np.frombuffer(raw, np.uint8))
        letter = register[1]
        if letter == "p":
            self.lines.append(f"ld.global.b32 %t, [%in+{place}]; setp.ne.b32 {register}, %t, 0;")
        else:
            bits = next(b for b, name in _REGISTERS.items() if name == letter)
            self.lines.append(f"ld.global.b{bits} {register}, [%in+{place}];")

    def _source(self, kind: str, *, wider: bool) -> str:
        """A loaded register, or a constant."""
        if self.draw.random() < 0.15 and kind not in ("f16", "bf16", "b128", "pred"):
            value = bits_of(kind, self.draw, finite=self.finite)
            if kind in ("f32", "f64"):
                return f"0f{value:08X}" if kind == "f32" else f"0d{value:016X}"
            return str(value - (1 << BITS[kind]) if value >> (BITS[kind] - 1) else value)
        return self._loaded(kind, wider=wider)

    def _guard(self) -> str:
        """Nothing, or a predicate of some lanes."""
        how = self.draw.randrange(5)
        if how < 2:
            return ""
        register = self._register("pred")
        lanes = (1, 3, 16)[how - 2]
        chosen = set(self.draw.sample(range(LANES), lanes))
        self._load(register, [int(lane in chosen) for lane in range(LANES)])
        return f"@{self.draw.choice(('', '!'))}{register} "

    def _add(self, one: Made) -> None:
        wider = one.name.startswith("cvt.")
        sources = [self._source(kind, wider=wider) for kind in one.sources]
        targets = [self._loaded(kind, wider=wider) for kind in one.targets]
        table = [] if one.table is None else [str(one.table)]
        operands = ", ".join(["|".join(targets), *sources, *table])
        self.lines.append(f"{self._guard()}{one.name} {operands};")
        self.places.append(self.outputs)
        for register in targets:
            self._store(register)

    def _store(self, register: str) -> None:
        place = self.outputs * _SLOT
        self.outputs += 1
        if register[1] == "p":
            self.lines.append(f"selp.b32 %t, 1, 0, {register}; st.global.b32 [%out+{place}], %t;")
        else:
            bits = next(b for b, name in _REGISTERS.items() if name == register[1])
            self.lines.append(f"st.global.b{bits} [%out+{place}], {register};")

    @property
    def text(self) -> str:
        """The module."""
        registers = " ".join(
            f".reg .{'pred' if bits == 1 else f'b{bits}'} %{_REGISTERS[bits]}<{max(count, 1)}>;"
            for bits, count in self.count.items()
        )
        body = "\n  ".join(self.lines)
        return f"""
.version 9.1
.target sm_100a
.address_size 64
.visible .entry rows(.param .u64 p_out, .param .u64 p_in)
{{
  {registers} .reg .b32 %t; .reg .b64 %out, %in;
  mov.u32 %t, %tid.x;
  ld.param.u64 %out, [p_out]; mad.wide.u32 %out, %t, 16, %out;
  ld.param.u64 %in, [p_in]; mad.wide.u32 %in, %t, 16, %in;
  {body}
  ret;
}}"""

    def launch(self) -> tuple[Dependent, GlobalMemory, int]:
        """What to run, the memory, and where the outputs are."""
        memory = GlobalMemory((len(self.inputs) + self.outputs + 8) * _SLOT + (1 << 16))
        out = memory.put(np.zeros(max(self.outputs, 1) * _SLOT, np.uint8), "out")
        given = memory.put(np.concatenate([*self.inputs, np.zeros(16, np.uint8)]), "in")
        plan = Plan(
            entry="rows", grid=Dim3(1), block=Dim3(LANES), arguments=(Pointer(out), Pointer(given))
        )
        return Dependent(program=parse(self.text), plan=plan), memory, out

    def taken(self) -> bool:
        """Whether the core runs all of it."""
        first, memory, _ = self.launch()
        ((_, code),) = prepare([first], memory, Schedule.parse("eager"), reporter(Bus()))
        made = attempt.program(code)
        return not isinstance(made, str) and not made.unsupported

    def differing(self) -> tuple[list[str], str]:
        """The instructions whose results differ, and the core's doubt."""
        first, memory, out = self.launch()
        other = copied(memory)
        python = on_python(first, memory, Schedule.parse("eager"), level=Level.WARN)
        assert python.error is None, python.error
        assert not python.findings, python.findings
        ran = on_core(first, other, Schedule.parse("eager"))
        assert not isinstance(ran, str), ran
        if ran.doubt:
            return [], ran.doubt
        start = out - memory.base
        mine = other.bytes[start : start + self.outputs * _SLOT].reshape(-1, LANES, 16)
        theirs = python.bytes[start : start + self.outputs * _SLOT].reshape(-1, LANES, 16)
        return [self._told(at, mine, theirs) for at in self._wrong(mine, theirs)], ""

    def _wrong(self, mine: np.ndarray, theirs: np.ndarray) -> list[int]:
        wrong = set(np.flatnonzero((mine != theirs).any((1, 2))).tolist())
        ends = [*self.places[1:], self.outputs]
        return [at for at, end in enumerate(ends) if wrong & set(range(self.places[at], end))]

    def _told(self, at: int, mine: np.ndarray, theirs: np.ndarray) -> str:
        place = self.places[at]
        found = [line for line in self.lines if f"{self.made[at].name} " in line]
        lane = int(np.flatnonzero((mine[place] != theirs[place]).any(1))[:1].sum())
        core, python = mine[place, lane, ::-1].tobytes(), theirs[place, lane, ::-1].tobytes()
        return f"{self.made[at]}: {found[0]} lane {lane}: core {core.hex()} python {python.hex()}"
