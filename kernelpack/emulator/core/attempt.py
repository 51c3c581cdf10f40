"""Whether a launch may be run by the core, and the run of it."""

import random
from functools import cache

import numpy as np

from kernelpack.cache.location import default_root
from kernelpack.emulator.core.compiled import library
from kernelpack.emulator.core.encode import encode
from kernelpack.emulator.core.library import Core, Memories, Numbers, Program, Ran
from kernelpack.emulator.machine.engine import Tempo
from kernelpack.emulator.machine.launched import Launched
from kernelpack.emulator.machine.memory import OUTSIDE, GlobalMemory
from kernelpack.emulator.schedule import Schedule
from kernelpack.emulator.translate.translate import Code
from kernelpack.errors import KernelpackError

_TEMPOS = (Tempo.EAGER, Tempo.PROMPT, Tempo.LAZY)


@cache
def core() -> Core | str:
    """The library; or why there is none."""
    try:
        return Core(library(default_root()))
    except KernelpackError as error:
        return str(error)


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
    exact: bool = False,
    logged: bool = False,
) -> Ran | str:
    """Run a launch on the core; or why it cannot be."""
    made = program(code)
    if isinstance(made, str):
        return made
    numbers = _numbers(launched, schedule)
    numbers.step_limit, numbers.is_watched = step_limit, watched
    numbers.is_logged, numbers.exact = logged, exact
    memories = Memories(
        bytes=memory.bytes,
        state=memory.state,
        base=memory.base,
        parameters=launched.parameters.bytes[launched.parameters.state != OUTSIDE].tobytes(),
    )
    return made.run(numbers, memories, _draws(schedule.seed))


def _draws(seed: int) -> np.ndarray:
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
