"""Whether the core may run a launch, and the run of it."""

import random
import sys
from collections.abc import Callable, Sequence
from functools import cache
from multiprocessing import parent_process
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack import process
from kernelpack.cache.location import default_root
from kernelpack.emulator.core.compiled import is_kept, library
from kernelpack.emulator.core.encode import encode
from kernelpack.emulator.core.library import Core, Memories, Numbers, Program, Ran
from kernelpack.emulator.machine.engine import Tempo
from kernelpack.emulator.machine.launched import Launched
from kernelpack.emulator.machine.memory import OUTSIDE, GlobalMemory
from kernelpack.emulator.models.mma import product
from kernelpack.emulator.schedule import Schedule
from kernelpack.emulator.translate.translate import Code
from kernelpack.emulator.watch import Watch
from kernelpack.errors import KernelpackError
from kernelpack.spec.counted import counted

_TEMPOS = (Tempo.EAGER, Tempo.FAIR, Tempo.LAZY)
_NOT_RUN = "an instruction that the core does not run"
"""How a doubt begins that will come again whenever this code runs."""
_STAND_WORDS = 7
"""Of a row that says where lanes of a warp stand (runner.cpp)."""
_EVERY = (1 << 32) - 1


@cache
def core() -> Core | str:
    """The library; or why there is none. What takes long, or is missing, is said on stderr."""
    try:
        root = default_root()
        if not is_kept(root):
            _say("compiling the emulator's engine, once on this machine: about half a minute")
        return Core(library(root), product)
    except (KernelpackError, OSError) as error:
        _say(f"the emulator runs without its compiled engine: {error}")
        return str(error)


def _say(what: str) -> None:
    """A line for whoever waits; workers of a pool need not say it again."""
    if parent_process() is None:
        sys.stderr.write(f"note: {what}\n")


def program(code: Code) -> Program | str:
    """What the core runs in place of a code; or why it does not."""
    found = core()
    if isinstance(found, str):
        return found
    if code.compiled is None:
        code.compiled = found.program(encode(code))
    made: Program | str = code.compiled
    return made


def attempt(
    launched: Launched,
    code: Code,
    memory: GlobalMemory,
    schedule: Schedule,
    *,
    step_limit: int,
    watched: bool = True,
    watch: Watch | None = None,
    logged: bool = False,
    only: int = -1,
) -> Ran | str:
    """Run a launch on the core; or why it cannot be.

    Args:
        launched: the launch.
        code: what it runs.
        memory: the memory, which is as before where the core doubts.
        schedule: the interleaving.
        step_limit: warp instructions after which it is given up.
        watched: whether the checks listen.
        watch: is shown the run, and may end it by raising.
        logged: whether the events are kept, for a comparison.
        only: the cluster that runs alone, by number; -1 where all do.

    """
    made = program(code)
    if isinstance(made, str):
        return _left(made, watch)
    numbers = _numbers(launched, schedule)
    numbers.step_limit, numbers.is_watched, numbers.is_logged = step_limit, watched, logged
    numbers.only = only
    memories = Memories(
        values=memory.bytes,
        state=memory.state,
        base=memory.base,
        parameters=launched.parameters.bytes[launched.parameters.state != OUTSIDE].tobytes(),
    )
    shown = _Shown(watch, code)
    ran = shown.of(lambda: made.run(numbers, memories, _draws(schedule.seed), shown.look))
    shown.raise_again(ran.log)
    if ran.doubt:
        _left(ran.doubt, watch)
    if ran.doubt.startswith(_NOT_RUN):
        code.compiled = ran.doubt
    return ran


def _left(why: str, watch: Watch | None) -> str:
    """Tell the watch why a launch is left to the Python engine."""
    if watch:
        watch.again(why)
    return why


class _Shown:
    """Shows a run to a watch. What that raises, or a key pressed, waits until the core is out."""

    def __init__(self, watch: Watch | None, code: Code) -> None:
        self.watch, self.code = watch, code
        self.steps = 0
        self.raised: BaseException | None = None
        self.heard: Sequence[int] = ()

    def of(self, run: Callable[[], Ran]) -> Ran:
        """A run that no exception leaves: neither what a callback raises, nor a key pressed."""
        found = []
        try:
            with process.noted() as self.heard:
                found.append(run())
        except (KeyboardInterrupt, SystemExit) as stop:
            self.raised = stop
        return found[0]

    def look(self, steps: int, where: Any) -> int:  # noqa: ANN401
        """Called by the core now and then; 1 ends the run."""
        try:
            self.steps = steps
            x, y, z, warp, at = where[:5]
            if self.watch:
                self.watch.look(steps, lambda: f"{_who((x, y, z), warp)} — {self._place(at)}")
        except BaseException as error:  # noqa: BLE001, for nothing may pass through the core
            self.raised = error
        return int(bool(self.heard) or self.raised is not None)

    def raise_again(self, stands: NDArray[np.int64]) -> None:
        """Raise what was raised meanwhile; a watch is shown where every warp stood."""
        if self.raised is None:
            return
        if self.watch and isinstance(self.raised, KeyboardInterrupt | SystemExit):
            rows = stands.reshape(-1, _STAND_WORDS).tolist()
            self.watch.stopped(self.steps, tuple(map(self._stand, rows)))
        raise self.raised

    def _stand(self, row: list[int]) -> str:
        x, y, z, warp, at, lanes, waits = row
        some = "" if lanes == _EVERY else f" ({counted(lanes.bit_count(), 'lane')})"
        reason = "waits" if waits else "runs, or polls without progress"
        return f"{_who((x, y, z), warp)}{some} — {self._place(at)}: {reason}"

    def _place(self, at: int) -> str:
        instructions = self.code.entry.body.instructions
        return instructions[at].place if at < len(instructions) else "the end"


def _who(cta: tuple[int, int, int], warp: int) -> str:
    return f"cta {cta} warp {warp}"


def _draws(seed: int) -> NDArray[np.uint32]:
    """The state of the random numbers that the Python engine would draw."""
    state = random.Random(seed).getstate()[1]  # noqa: S311
    return np.array(state, np.uint32)


def _numbers(launched: Launched, schedule: Schedule) -> Numbers:
    shape = launched.shape
    held = schedule.held or (-1, -1)
    found = Numbers(
        threads=shape.threads,
        dynamic_shared_bytes=shape.dynamic_shared_bytes,
        explicit_cluster=shape.explicit_cluster,
        registers=-1 if shape.registers is None else shape.registers,
        shared_bytes=launched.shared_bytes,
        local_bytes=launched.local_bytes,
        workspace=launched.workspace,
        multiprocessors=shape.target.multiprocessors,
        multiprocessor_shared_bytes=shape.target.multiprocessor.shared_bytes,
        target=0,
        tempo=_TEMPOS.index(schedule.tempo),
        held_rank=held[0],
        held_warp=held[1],
        resident=schedule.resident,
    )
    for name in ("grid", "block", "cluster"):
        getattr(found, name)[:] = getattr(shape, name)
    return found
