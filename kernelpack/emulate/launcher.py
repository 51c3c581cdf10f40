"""Launches of a host program: on the emulator, or by a function that does the kernel's work."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelpack.emulate import expected
from kernelpack.emulate.arena import Arena
from kernelpack.emulate.modules import Kernel
from kernelpack.emulate.names import matches, shorten
from kernelpack.emulate.options import Native, Options
from kernelpack.emulate.protocol import Status
from kernelpack.emulate.report import Launch, of_error, of_finding
from kernelpack.emulate.watching import Abandoned, Watching
from kernelpack.emulator.checks import ALL
from kernelpack.emulator.faults import AssertionFailed, Fault, Level
from kernelpack.emulator.prepare import Dependent
from kernelpack.emulator.run import Result, run
from kernelpack.emulator.schedule import Schedule
from kernelpack.errors import KernelpackError
from kernelpack.spec.launch import Plan

_NOTHING = Result(findings=(), error=None, steps=0, operations=0, seconds=0.0)

_FATAL = {"bounds": Status.ILLEGAL_ADDRESS, "misaligned": Status.MISALIGNED_ADDRESS}
"""Findings after which the emulator goes on, to see more, and a GPU does not."""

WORKSPACE_BYTES = 8
"""A size and a barrier: cooperative_groups/details/driver_abi.h."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A launch as a program asked for it."""

    kernel: Kernel
    plan: Plan
    parameters: bytes
    stream: int = 0
    cooperative: bool = False

    def may_overlap(self, before: "Asked") -> bool:
        """Whether it may begin before another launch has ended."""
        is_behind = self.plan.programmatic and self.stream == before.stream
        return is_behind and not (self.cooperative or before.cooperative)


class Launcher:
    """Runs the launches of one program."""

    def __init__(
        self,
        arena: Arena,
        options: Options,
        tell: Callable[[str], None],
        is_wanted: Callable[[], bool],
    ) -> None:
        self.arena, self.options, self.tell, self.is_wanted = arena, options, tell, is_wanted
        self.workspace = 0

    def launch(self, together: Sequence[Asked]) -> tuple[list[Launch], Status]:
        """Run launches, each of which may overlap the next; their outcomes.

        And the error that whoever waits for them gets. Only kernels on trial run together: what
        would be compared with the others?
        """
        if len(together) > 1 and not all(map(self._is_on_trial, together)):
            parts = [self.launch([asked]) for asked in together]
            failed = (status for _, status in parts if status)
            return [x for launches, _ in parts for x in launches], next(failed, Status.SUCCESS)
        launches, error = self._launch(together)
        for launch in launches:
            self._tell_of(launch)
        if error:
            return launches, _failure(error)
        return launches, next(filter(None, map(_status, launches)), Status.SUCCESS)

    def _launch(self, together: Sequence[Asked]) -> tuple[list[Launch], KernelpackError | None]:
        is_trial = self._is_on_trial(together[0])
        schedule = self._schedule(together) if is_trial else Schedule()
        native = self._native(together[0].plan.entry)
        result = _NOTHING
        error: KernelpackError | None = None
        try:
            if native:
                self.tell(f"{shorten(together[0].plan.entry)}: computed natively")
                native(self.arena, together[0].parameters)
            else:
                result = self._run(together, schedule, is_trial=is_trial)
                error = result.error
        except Abandoned:
            names = ", ".join(shorten(asked.plan.entry) for asked in together)
            self.tell(f"{names}: stopped, because its program has ended")
        except KernelpackError as caught:
            error = caught
        sys.stdout.write("".join(result.printed))
        sys.stdout.flush()
        records = [
            self._record(together, index, result, error, schedule, is_trial=is_trial)
            for index in range(len(together))
        ]
        return records, error

    def _is_on_trial(self, asked: Asked) -> bool:
        """Whether the schedule and the checks apply to a launch."""
        entry = asked.plan.entry
        return self._native(entry) is None and matches(entry, self.options.kernels)

    def _native(self, entry: str) -> Native | None:
        """The function that does a kernel's work, if the options give one."""
        patterns = self.options.natives.items()
        return next((native for pattern, native in patterns if matches(entry, pattern)), None)

    def _schedule(self, together: Sequence[Asked]) -> Schedule:
        """The schedule that was asked for; `lazy` where a launch lacks the warp it holds back."""
        wanted = self.options.schedule
        try:
            for asked in together:
                wanted.check(*asked.kernel.warps(asked.plan))
        except Fault as fault:
            self.tell(f"{fault.what}: `lazy` instead")
            return Schedule.parse("lazy", wanted.seed)
        return wanted

    def _workspace(self, asked: Asked) -> int:
        """The address of fresh words at which the blocks of a cooperative launch meet."""
        if not asked.cooperative:
            return 0
        if not self.workspace:
            self.workspace = self.arena.memory.allocate(WORKSPACE_BYTES, "the grid's workspace")
        self.arena.memory.write_bytes(self.workspace, bytes(WORKSPACE_BYTES))
        return self.workspace

    def _run(self, together: Sequence[Asked], schedule: Schedule, *, is_trial: bool) -> Result:
        first, *then = together
        start = self.options.run if is_trial else run
        return start(
            first.kernel.module.program,
            first.plan,
            self.arena.memory,
            parameters=first.parameters,
            addresses=first.kernel.module.addresses,
            checks=ALL if is_trial else (),
            schedule=schedule,
            level=self.options.level,
            step_limit=self.options.step_limit,
            workspace=self._workspace(first),
            watch=Watching(first.plan.entry, self.tell, self.is_wanted),
            then=[
                Dependent(
                    name=shorten(asked.plan.entry),
                    program=asked.kernel.module.program,
                    plan=asked.plan,
                    parameters=asked.parameters,
                    addresses=asked.kernel.module.addresses,
                )
                for asked in then
            ],
        )

    def _record(
        self,
        together: Sequence[Asked],
        index: int,
        result: Result,
        error: KernelpackError | None,
        schedule: Schedule,
        *,
        is_trial: bool,
    ) -> Launch:
        """The outcome of one of them; the first has the time of all."""
        plan = together[index].plan
        findings = [finding for finding in result.findings if finding.launch == index]
        troubles = [of_finding(finding, plan.entry) for finding in findings]
        troubles += [of_error(error, plan.entry)] if error and index == result.ended_by else []
        known = self.options.expected
        return Launch(
            kernel=plan.entry,
            grid=(plan.grid.x, plan.grid.y, plan.grid.z),
            block=(plan.block.x, plan.block.y, plan.block.z),
            cluster=(plan.cluster.x, plan.cluster.y, plan.cluster.z),
            shared_bytes=plan.shared_bytes,
            overlaps=together[index - 1].plan.entry if index else "",
            schedule=schedule.name,
            on_trial=is_trial,
            steps=result.steps_of[index] if result.steps_of else 0,
            seconds=0.0 if index else result.seconds,
            troubles=tuple(expected.judge(p, known, schedule.name) for p in troubles),
        )

    def _tell_of(self, launch: Launch) -> None:
        self.tell(str(launch))
        for trouble in launch.troubles:
            known = f" (expected: {trouble.expected})" if trouble.expected else ""
            self.tell(f"  {trouble.level.name.lower()}: {trouble.text}{known}")
            for line in self.options.lines.beside(trouble.text):
                self.tell(f"    {line}")


def _failure(error: KernelpackError) -> Status:
    """A GPU's status for a launch that this ended."""
    return Status.ASSERT if isinstance(error, AssertionFailed) else Status.LAUNCH_FAILED


def _status(launch: Launch) -> Status:
    """A GPU's status for a launch that the emulator ran to its end."""
    news = (p for p in launch.troubles if p.level is Level.ERROR and not p.expected)
    return next((_FATAL[p.rule] for p in news if p.rule in _FATAL), Status.SUCCESS)
