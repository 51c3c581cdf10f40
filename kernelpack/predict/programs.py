"""The launches of a CUDA host program, each shown before it would run, and not run.

    show(["./flashmla_prefill", "4096"], libraries, each, device=find("h100"), kernels="*attn*")

The program runs as `kernelpack emulate` runs it: its own launchers lay out arguments and tensor
maps. Launches of other kernels run, so that what they make for the next, such as a plan of splits,
is there. What a shown launch would write stays as it was.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelpack.emulate.devices import Device
from kernelpack.emulate.emulate import emulate
from kernelpack.emulate.options import MEMORY_BYTES, Options
from kernelpack.emulate.report import Report
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.prepare import Dependent
from kernelpack.emulator.ptx.parser import Program
from kernelpack.emulator.run import Result
from kernelpack.emulator.watch import Watch
from kernelpack.predict.inputs import Prepared
from kernelpack.spec.launch import Plan

Each = Callable[[Prepared], int | None]
"""Is shown a launch; may say how many warp instructions of it ran meanwhile."""


def show(
    command: Sequence[str],
    libraries: Path,
    each: Each,
    *,
    device: Device,
    kernels: str = "*",
    memory_bytes: int = MEMORY_BYTES,
    environment: Mapping[str, str] | None = None,
) -> Report:
    """Run a program and show its launches.

    Args:
        command: the program and its arguments.
        libraries: the folder that `emulate.standin.build` returned.
        each: is given a launch where it would run; the program waits meanwhile.
        device: the device that the program finds.
        kernels: a pattern; launches of kernels whose names it does not match run and are not shown.
        memory_bytes: of the device.
        environment: of the program; this process's where it is left out.

    Raises:
        UnsupportedError: the program's CUDA runtime cannot be replaced.
        KernelpackError: there is no such program.

    """
    options = Options(
        device=device,
        memory_bytes=memory_bytes,
        kernels=kernels,
        run=shown_to(each),
        environment=dict(os.environ if environment is None else environment),
    )
    return emulate(command, libraries, options, lambda _: None)


def shown_to(each: Each) -> Callable[..., Result]:
    """A function with the words of `emulator.run`, which shows the launches and runs none."""

    def run(
        program: Program,
        plan: Plan,
        memory: GlobalMemory,
        *,
        parameters: bytes,
        addresses: Mapping[str, int],
        then: Sequence[Dependent],
        step_limit: int,
        watch: Watch,
        **_how: Any,  # noqa: ANN401 - how a run is watched
    ) -> Result:
        begin, steps = time.perf_counter(), []
        first = Dependent(program=program, plan=plan, parameters=parameters, addresses=addresses)
        for one in (first, *then):
            launch = Prepared(
                program=one.program,
                plan=one.plan,
                memory=memory,
                parameters=one.parameters,
                addresses=one.addresses,
                most_steps=step_limit,
                watch=watch,
            )
            steps.append(each(launch) or 0)
        return Result(
            findings=(),
            error=None,
            steps=sum(steps),
            operations=0,
            seconds=time.perf_counter() - begin,
            steps_of=tuple(steps),
        )

    return run
