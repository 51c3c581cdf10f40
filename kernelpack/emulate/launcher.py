"""One launch of a host program: on the emulator, or by a function that does the kernel's work."""

import sys
from collections.abc import Callable
from fnmatch import fnmatchcase

from kernelpack.emulate import expected
from kernelpack.emulate.arena import Arena
from kernelpack.emulate.modules import Kernel
from kernelpack.emulate.options import Native, Options
from kernelpack.emulate.protocol import Status
from kernelpack.emulate.report import Launch, of_error, of_finding, shorten
from kernelpack.emulate.watching import Abandoned, Watching
from kernelpack.emulator.checks import ALL
from kernelpack.emulator.faults import AssertionFailed, Fault, Level
from kernelpack.emulator.run import Result, run
from kernelpack.emulator.schedule import Schedule
from kernelpack.errors import KernelpackError
from kernelpack.spec.launch import Plan

_NOTHING = Result(findings=(), error=None, steps=0, operations=0, seconds=0.0)

_FATAL = {"bounds": Status.ILLEGAL_ADDRESS, "misaligned": Status.MISALIGNED_ADDRESS}
"""Findings after which the emulator goes on, to see more, and a GPU does not."""

WORKSPACE_BYTES = 8
"""A size and a barrier: cooperative_groups/details/driver_abi.h."""


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

    def launch(
        self, kernel: Kernel, plan: Plan, parameters: bytes, *, cooperative: bool = False
    ) -> tuple[Launch, Status]:
        """Run a launch; what came of it, and what whoever waits for it is told.

        Blocks of a cooperative one may meet: they find a workspace for that.
        """
        workspace = self._workspace() if cooperative else 0
        native = self._native(plan.entry)
        on_trial = native is None and fnmatchcase(plan.entry, self.options.kernels)
        schedule = self._schedule(kernel, plan) if on_trial else Schedule()
        result = _NOTHING
        error: KernelpackError | None = None
        try:
            if native:
                self.tell(f"{plan.entry}: computed natively")
                native(self.arena, parameters)
            else:
                result = self._run(
                    kernel, plan, parameters, schedule, on_trial=on_trial, workspace=workspace
                )
                error = result.error
        except Abandoned:
            self.tell(f"{shorten(plan.entry)}: stopped, for its program has ended")
        except KernelpackError as caught:
            error = caught
        sys.stdout.write("".join(result.printed))
        sys.stdout.flush()
        launch = self._record(plan, result, error, schedule, on_trial=on_trial)
        self._tell_of(launch)
        return launch, _failure(error) if error else _status(launch)

    def _native(self, entry: str) -> Native | None:
        """The function that does a kernel's work, if the options give one."""
        patterns = self.options.natives.items()
        return next((native for pattern, native in patterns if fnmatchcase(entry, pattern)), None)

    def _schedule(self, kernel: Kernel, plan: Plan) -> Schedule:
        """The schedule that was asked for; `lazy` where the launch lacks the warp it holds back."""
        wanted = self.options.schedule
        try:
            wanted.check(*kernel.warps(plan))
        except Fault as fault:
            self.tell(f"{fault.what}: `lazy` instead")
            return Schedule.parse("lazy", wanted.seed)
        return wanted

    def _workspace(self) -> int:
        """The address of fresh words at which the blocks of a grid meet."""
        if not self.workspace:
            self.workspace = self.arena.memory.allocate(WORKSPACE_BYTES, "the grid's workspace")
        self.arena.memory.write_bytes(self.workspace, bytes(WORKSPACE_BYTES))
        return self.workspace

    def _run(
        self,
        kernel: Kernel,
        plan: Plan,
        parameters: bytes,
        schedule: Schedule,
        *,
        on_trial: bool,
        workspace: int,
    ) -> Result:
        return run(
            kernel.module.program,
            plan,
            self.arena.memory,
            parameters=parameters,
            addresses=kernel.module.addresses,
            checks=ALL if on_trial else (),
            schedule=schedule,
            level=self.options.level,
            step_limit=self.options.step_limit,
            workspace=workspace,
            watch=Watching(plan.entry, self.tell, self.is_wanted),
        )

    def _record(
        self,
        plan: Plan,
        result: Result,
        error: KernelpackError | None,
        schedule: Schedule,
        *,
        on_trial: bool,
    ) -> Launch:
        problems = [of_finding(finding, plan.entry) for finding in result.findings]
        problems += [of_error(error, plan.entry)] if error else []
        known = self.options.expected
        return Launch(
            kernel=plan.entry,
            grid=(plan.grid.x, plan.grid.y, plan.grid.z),
            block=(plan.block.x, plan.block.y, plan.block.z),
            cluster=(plan.cluster.x, plan.cluster.y, plan.cluster.z),
            shared_bytes=plan.shared_bytes,
            schedule=schedule.name,
            on_trial=on_trial,
            steps=result.steps,
            seconds=result.seconds,
            problems=tuple(expected.judge(p, known, schedule.name) for p in problems),
        )

    def _tell_of(self, launch: Launch) -> None:
        self.tell(str(launch))
        for problem in launch.problems:
            known = f" (expected: {problem.expected})" if problem.expected else ""
            self.tell(f"  {problem.level.name.lower()}: {problem.text}{known}")


def _failure(error: KernelpackError) -> Status:
    """What a GPU would say of a launch that this ended."""
    return Status.ASSERT if isinstance(error, AssertionFailed) else Status.LAUNCH_FAILED


def _status(launch: Launch) -> Status:
    """What a GPU would say of a launch that the emulator ran to its end."""
    news = (p for p in launch.problems if p.level is Level.ERROR and not p.expected)
    return next((_FATAL[p.rule] for p in news if p.rule in _FATAL), Status.SUCCESS)
