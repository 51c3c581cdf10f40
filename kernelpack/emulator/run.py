"""Run a kernel on the CPU: `run(program, plan, memory)` → what it did, and what is wrong with it.

The memory is the caller's: allocate and fill it, run, read the results out of it. The kernel sees
the same parameters a GPU would hand it; a tensor map in them is our own 128 bytes.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelpack.emulator.checks import ALL, Check, Reporter
from kernelpack.emulator.collector import Collector
from kernelpack.emulator.core.attempt import attempt
from kernelpack.emulator.core.library import Ran
from kernelpack.emulator.events import Bus
from kernelpack.emulator.faults import EmulationError, Fault, Finding, Level, UnsupportedError
from kernelpack.emulator.machine.bad_access import reporter
from kernelpack.emulator.machine.grid import Machine
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.models import mma
from kernelpack.emulator.prepare import Dependent, prepare
from kernelpack.emulator.ptx.parser import Program, parse
from kernelpack.emulator.runner import Runner
from kernelpack.emulator.schedule import Schedule
from kernelpack.emulator.translate import refusals
from kernelpack.emulator.translate.fits import STUMBLES
from kernelpack.emulator.watch import Watch
from kernelpack.spec.counted import counted
from kernelpack.spec.launch import Plan

STEP_LIMIT = 100_000_000
"""Warp instructions after which a run is given up, unless the caller says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Result:
    """The result of a run. `findings` are those up to the level asked for, worst first.

    `error` is the fault that ended the run early, if one did; the results are then worthless.
    """

    findings: tuple[Finding, ...]
    error: EmulationError | None
    steps: int
    operations: int
    seconds: float
    printed: tuple[str, ...] = ()
    steps_of: tuple[int, ...] = ()
    """Of each launch, where several overlap."""
    ended_by: int = 0
    """The launch that ran when the error ended the run."""

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


def run(
    program: Program | str,
    plan: Plan,
    memory: GlobalMemory,
    *,
    checks: Iterable[Callable[[Reporter], Check]] = ALL,
    schedule: Schedule | str = "eager",
    seed: int = 0,
    level: Level | str = Level.WARN,
    step_limit: int = STEP_LIMIT,
    exact: bool = False,
    parameters: bytes | None = None,
    addresses: Mapping[str, int] | None = None,
    workspace: int = 0,
    watch: Watch | None = None,
    then: Sequence[Dependent] = (),
    compiled: bool = True,
    only: Sequence[int] | None = None,
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
        then: launches that depend on the one before them, and may overlap it.
        compiled: whether the compiled engine may run it. The outcome is the same; it takes longer
            by the Python engine.
        only: the clusters that run, by number, x fastest; all of them where it is None. One
            of them by itself, and with no checks, the compiled engine may run.

    Raises:
        PtxError: the text is not PTX, or has no such entry.
        Fault: a GPU would refuse the launch, or there is no such schedule of it.
        UnsupportedError: the kernel uses something that is not modelled.

    """
    module = parse(program) if isinstance(program, str) else program
    chosen = Schedule.parse(schedule, seed) if isinstance(schedule, str) else schedule
    first = Dependent(
        program=module, plan=plan, parameters=parameters, addresses=addresses, workspace=workspace
    )
    again = then or [first] * (chosen.launches - 1)
    bus, most = Bus(), Level.of(level)
    on_bad = reporter(bus)
    made = prepare([first, *again], memory, chosen, on_bad)
    alone = only is not None and len(only) == 1 and not checks
    of_the_core = alone or (only is None and _are_of_the_core(checks, most))
    if compiled and len(made) == 1 and not exact and of_the_core:
        done = attempt(
            *made[0],
            memory,
            chosen,
            step_limit=step_limit,
            watched=not alone,
            watch=watch,
            only=only[0] if only else -1,
        )
        if not isinstance(done, str) and not done.doubt:
            return _clean(done)
    codes = [code for _, code in made]
    machine = Machine(
        [launched for launched, _ in made],
        memory,
        bus,
        on_bad=on_bad,
        multiply=mma.exact if exact else mma.fast,
        tempo=chosen.tempo,
        seed=chosen.seed,
        only=only,
    )
    collector = Collector(most, codes, machine)
    for check in checks:
        if getattr(check, "level", Level.ERROR) <= most:
            check(collector).listen(bus)
    begin = time.perf_counter()
    error = _run_to_end(Runner(machine, codes, chosen, step_limit=step_limit, watch=watch))
    return Result(
        findings=collector.sorted,
        error=error,
        steps=machine.step,
        operations=machine.engine.count,
        seconds=time.perf_counter() - begin,
        printed=tuple(machine.printed),
        steps_of=machine.steps_of(),
        ended_by=machine.current.cta.cluster.launch if machine.current else 0,
    )


def _are_of_the_core(checks: Iterable[Callable[[Reporter], Check]], most: Level) -> bool:
    """Whether the compiled engine has these checks: all that there are but the strict ones."""
    return checks is ALL and most <= Level.WARN


def _clean(ran: Ran) -> Result:
    """A run of the compiled engine, which has nothing to remark."""
    return Result(
        findings=(),
        error=None,
        steps=ran.steps,
        operations=ran.operations,
        seconds=ran.seconds,
        steps_of=(ran.steps,),
    )


def _run_to_end(runner: Runner) -> EmulationError | None:
    """Run; the fault that ended it early, if one did."""
    try:
        runner.run()
    except Fault as fault:
        fault.where = fault.where or _now(runner)
        return fault
    except UnsupportedError as error:
        error.where = error.where or _now(runner)
        error.hint = error.hint or _what_else(runner)
        raise
    except STUMBLES as error:
        what = f"this use of an instruction is not modelled: {type(error).__name__}, {error}"
        raise UnsupportedError(what, where=_now(runner)) from error
    return None


def _what_else(runner: Runner) -> str:
    """Other unmodelled forms of the kernel; empty where it is one form alone."""
    warp = runner.machine.current
    entry = runner.code_of(warp).entry if warp else None
    forms = refusals.of_entry(entry) if entry else ()
    if entry is None or len(forms) < 2:
        return ""
    return f"`{entry.name}` has {len(forms)} such forms: {', '.join(map(str, forms))}"


def _now(runner: Runner) -> str:
    """The place of what runs, empty before anything does."""
    warp = runner.machine.current
    return runner.place(warp) if warp else ""
