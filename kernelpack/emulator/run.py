"""Run a kernel on the CPU: `run(program, plan, memory)` → what it did, and what is wrong with it.

The memory is the caller's: allocate and fill it, run, read the results out of it. The kernel sees
the same parameters a GPU would hand it; a tensor map in them is our own 128 bytes.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from kernelpack.emulator import limits
from kernelpack.emulator.checks import ALL, Check, Report
from kernelpack.emulator.events import Bus
from kernelpack.emulator.faults import (
    EmulationError,
    Fault,
    Finding,
    Level,
    PtxError,
    Rule,
    UnsupportedError,
)
from kernelpack.emulator.machine import tensor_map
from kernelpack.emulator.machine.cluster import SHARED_START
from kernelpack.emulator.machine.grid import Machine
from kernelpack.emulator.machine.lanes import WIDTH
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.models import mma
from kernelpack.emulator.ptx.link import Layout, lay_out
from kernelpack.emulator.ptx.parser import Entry, Program, parse
from kernelpack.emulator.runner import Runner
from kernelpack.emulator.schedule import Schedule
from kernelpack.emulator.semantics.fits import STUMBLES
from kernelpack.emulator.semantics.translate import Code, translate
from kernelpack.emulator.watch import Watch
from kernelpack.spec.counted import counted
from kernelpack.spec.launch import Plan, Pointer, Scalar
from kernelpack.spec.tensormap import TensorMap

STEP_LIMIT = 100_000_000
"""Warp instructions after which a run is given up, unless the caller says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Result:
    """What a run did. `findings` are those up to the level asked for, worst first.

    `error` is the fault that ended the run early, if one did; the results are then worthless.
    """

    findings: tuple[Finding, ...]
    error: EmulationError | None
    steps: int
    operations: int
    seconds: float
    printed: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether the kernel ran to its end and nothing was found."""
        return self.error is None and not self.findings

    def __repr__(self) -> str:
        """The sum in a line, then what is wrong: what ended the run, and each finding."""
        ended = [] if self.error is None else [self.error]
        found = counted(len(self.findings), "finding")
        said = f"<Result: {counted(self.steps, 'warp instruction')}, {found}"
        return "\n  ".join([said, *map(str, (*ended, *self.findings))]) + ">"

    def raise_on_error(self) -> "Result":
        """The result itself; raises the fault that ended the run, if there is one."""
        if self.error is not None:
            raise self.error
        return self


@dataclass(slots=True)
class _Collector:
    """Findings, each kind of them at each instruction once, with who and where."""

    level: Level
    code: Code
    machine: Machine | None = None
    found: dict[tuple[str, str, str], Finding] = field(default_factory=dict)

    def __call__(
        self, rule: Rule, message: str, lane: int | None = None, *, once: bool = False
    ) -> None:
        """A check found something at what runs now."""
        if rule.level > self.level:
            return
        place, text, cta, warp = self._who()
        key = (rule.name, "", "") if once else (rule.name, place, text)
        if key in self.found:
            self.found[key] = replace(self.found[key], count=self.found[key].count + 1)
            return
        self.found[key] = Finding(
            rule=rule,
            message=message,
            cta=cta,
            warp=warp,
            lane=lane,
            place=place,
            instruction=text,
        )

    @property
    def sorted(self) -> tuple[Finding, ...]:
        """The findings, worst first; of one level those of a rule together, as they came."""
        order = {name: at for at, (name, *_) in reversed(list(enumerate(self.found)))}
        found = self.found.values()
        return tuple(sorted(found, key=lambda f: (f.rule.level, order[f.rule.name])))

    @property
    def at(self) -> int:
        """The index of what runs now in the entry's body; -1 before anything does."""
        machine = self.machine
        assert machine is not None
        running = machine.engine.running
        if running is not None:
            return running.at
        return machine.current.at if machine.current else -1

    def line(self, at: int) -> str:
        """The place of an instruction."""
        instructions = self.code.entry.body.instructions
        return instructions[at].place if 0 <= at < len(instructions) else "(nowhere)"

    @property
    def step(self) -> int:
        """The clock of the machine."""
        return self.machine.step if self.machine else 0

    def _who(self) -> tuple[str, str, tuple[int, int, int], int | None]:
        machine = self.machine
        assert machine is not None
        running = machine.engine.running
        warp = running.warp if running else machine.current
        instructions = self.code.entry.body.instructions
        if warp is None or not instructions:
            return "", "", (0, 0, 0), None
        instruction = instructions[min(self.at, len(instructions) - 1)]
        return instruction.place, instruction.text, warp.cta.position, warp.index


def run(
    program: Program | str,
    plan: Plan,
    memory: GlobalMemory,
    *,
    checks: Iterable[Callable[[Report], Check]] = ALL,
    schedule: Schedule | str = "eager",
    seed: int = 0,
    level: Level | str = Level.WARN,
    step_limit: int = STEP_LIMIT,
    exact: bool = False,
    parameters: bytes | None = None,
    addresses: Mapping[str, int] | None = None,
    workspace: int = 0,
    watch: Watch | None = None,
) -> Result:
    """Run a launch on the emulator.

    Args:
        program: a module, or its text.
        plan: the launch; addresses in it are those of `memory`.
        memory: device memory; it is changed.
        checks: which checks listen; none of them is fastest.
        schedule: an interleaving, or its name.
        seed: of the random choices a schedule makes.
        level: findings above it are not reported; or its name.
        step_limit: warp instructions after which the run is given up.
        exact: whether tensor cores add up as measured on hardware, which is slow, or in float64.
        parameters: the parameter block as a host program packed it, in place of `plan.arguments`.
        addresses: where the module's variables already are; placed and initialised when left out.
        workspace: where the blocks of a cooperative launch meet; the kernel finds it in `%envreg`.
        watch: is shown the run between its rounds, and may end it by raising.

    Raises:
        PtxError: the text is not PTX, or has no such entry.
        Fault: a GPU would refuse the launch, or there is no such schedule of it.
        UnsupportedError: the kernel uses something that is not modelled.

    """
    module = parse(program) if isinstance(program, str) else program
    entry = module.entry(plan.entry)
    chosen = Schedule.parse(schedule, seed) if isinstance(schedule, str) else schedule
    if addresses is None:
        addresses = place_variables(module, memory)
    layout = lay_out(module, entry, addresses, SHARED_START)
    shape = limits.shape(entry, plan, layout)
    chosen.check(prod(shape.cluster), -(-plan.block.count // WIDTH))
    code = translate(entry, layout)
    bus = Bus()
    most = Level.of(level)
    collector = _Collector(most, code)
    for check in checks:
        if getattr(check, "level", Level.ERROR) <= most:
            check(collector).listen(bus)
    machine = Machine(
        shape,
        memory,
        pack_arguments(entry, plan) if parameters is None else _whole(entry, parameters),
        bus,
        tempo=chosen.tempo,
        seed=chosen.seed,
        workspace=workspace,
        launches=chosen.launches,
    )
    collector.machine = machine
    machine.shared_names = _shared_names(module, entry, layout, plan.shared_bytes)
    machine.multiply = mma.exact if exact else mma.fast
    begin = time.perf_counter()
    error = _run_to_end(Runner(machine, code, chosen, step_limit=step_limit, watch=watch))
    return Result(
        findings=collector.sorted,
        error=error,
        steps=machine.step,
        operations=machine.engine.count,
        seconds=time.perf_counter() - begin,
        printed=tuple(machine.printed),
    )


def _shared_names(
    module: Program, entry: Entry, layout: Layout, dynamic_bytes: int
) -> dict[int, tuple[int, str]]:
    """The variables in shared memory by offset: their sizes and names."""
    variables = (*entry.body.variables, *module.variables)
    named = {
        layout.symbols[v.name].address: (v.size, v.name)
        for v in variables
        if v.space == "shared" and not v.external
    }
    if dynamic_bytes:
        named[layout.shared_end] = dynamic_bytes, "dynamic shared memory"
    return named


def _run_to_end(runner: Runner) -> EmulationError | None:
    """Run; the fault that ended it early, if one did."""
    try:
        runner.run()
    except Fault as fault:
        fault.where = fault.where or _now(runner)
        return fault
    except UnsupportedError as error:
        error.where = error.where or _now(runner)
        raise
    except STUMBLES as error:
        what = f"this use of an instruction is not modelled: {type(error).__name__}, {error}"
        raise UnsupportedError(what, where=_now(runner)) from error
    return None


def _now(runner: Runner) -> str:
    """The place of what runs, empty before anything does."""
    warp = runner.machine.current
    return runner.place(warp) if warp else ""


def place_variables(program: Program, memory: GlobalMemory) -> dict[str, int]:
    """Allocate and initialise the global and constant variables that the module defines."""
    addresses: dict[str, int] = {}
    wanted = [v for v in program.variables if v.space in ("global", "const") and not v.external]
    for variable in wanted:
        alignment = max(variable.alignment, 16)
        addresses[variable.name] = memory.allocate(
            variable.size, variable.name, alignment=alignment
        )
    for variable in wanted:
        raw = bytearray(variable.initial.ljust(variable.size, b"\0"))
        for offset, symbol in variable.relocations:
            base = addresses.get(symbol.name, program.functions.addresses.get(symbol.name))
            if base is None:
                raise PtxError(f"`{variable.name}` holds the address of unknown `{symbol.name}`")
            value = base + symbol.offset
            raw[offset : offset + 8] = value.to_bytes(8, "little")
        memory.write_bytes(addresses[variable.name], bytes(raw))
    return addresses


def pack_arguments(entry: Entry, plan: Plan) -> bytes:
    """The parameter block of a launch.

    Raises:
        Fault: the arguments are not those the entry declares, by number or size.
    """
    if len(plan.arguments) != len(entry.parameters):
        raise Fault(
            f"{len(plan.arguments)} arguments for {len(entry.parameters)} parameters",
            where=entry.name,
        )
    block = bytearray(entry.parameter_bytes)
    for argument, parameter in zip(plan.arguments, entry.parameters, strict=True):
        raw = _bytes_of(argument)
        if len(raw) != parameter.size:
            raise Fault(
                f"argument of {len(raw)} bytes for `{parameter.name}` of {parameter.size}",
                where=entry.name,
            )
        block[parameter.offset : parameter.offset + len(raw)] = raw
    return bytes(block)


def _whole(entry: Entry, parameters: bytes) -> bytes:
    """A parameter block of the size the entry declares.

    Raises:
        Fault: it is shorter or longer.
    """
    if len(parameters) != entry.parameter_bytes:
        raise Fault(
            f"{len(parameters)} bytes of parameters; the kernel takes {entry.parameter_bytes}",
            where=entry.name,
        )
    return parameters


def _bytes_of(argument: Pointer | Scalar | TensorMap) -> bytes:
    if isinstance(argument, Pointer):
        return argument.address.to_bytes(8, "little")
    if isinstance(argument, TensorMap):
        return tensor_map.encode(argument)
    size = argument.dtype.bits // 8
    return (argument.value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
