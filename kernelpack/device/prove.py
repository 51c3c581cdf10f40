"""One variant on one case on a GPU: it runs a few times, and is checked against the oracle.

Three rules are held beside the numbers: nothing around an array is written, no input is, and each
run gives the same bits.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

import numpy as np

from kernelpack.ops.trial import Guarded, Trial
from kernelpack.spec.counted import counted
from kernelpack.spec.launch import Dim3
from kernelpack.spec.variant import Variant
from kernelpack.verify.compare import Comparison, compare
from kernelpack.verify.job import Job
from kernelpack.verify.outcome import Broken, Outcome, State

OUTSIDE, INPUT, REPEATS = "written-outside", "input-written", "repeats-differ"
"""The rules that a run on a GPU may break."""

Outputs = dict[str, Guarded]


def prove(
    job: Job, trial: Trial, variant: Variant, repeats: int, busy: AbstractContextManager[None]
) -> Outcome:
    """Run a variant `repeats` times and check what it writes against the oracle.

    Args:
        job: the run, for the outcome.
        trial: its case, on a device.
        variant: what runs.
        repeats: how often; each begins with outputs that nobody wrote.
        busy: entered while the GPU works.

    Raises:
        DriverError: the kernel faulted, or the driver refused it: the process is of no more use.
        KernelpackError: the launch is not possible.

    """
    start = time.process_time()
    with busy:
        runs = [trial.run(variant) for _ in range(repeats)]
        disturbed = trial.disturbed()
    plan = trial.plan
    comparisons = _comparisons(trial, variant, runs[0])
    broken = (*_outside(runs), *map(_input, disturbed), *_repeats(runs))
    return Outcome(
        job=job,
        state=_state(comparisons, broken),
        cluster=_sides(plan.cluster) if plan else (1, 1, 1),
        ctas=plan.grid.count if plan else 0,
        comparisons=comparisons,
        broken=broken,
        seconds=time.process_time() - start,
    )


def _sides(dim: Dim3) -> tuple[int, int, int]:
    return dim.x, dim.y, dim.z


def _comparisons(trial: Trial, variant: Variant, outputs: Outputs) -> tuple[Comparison, ...]:
    expected = trial.expects(variant)
    return tuple(compare(name, output.values, expected[name]) for name, output in outputs.items())


def _state(comparisons: Sequence[Comparison], broken: Sequence[Broken]) -> State:
    if not all(comparison.is_right for comparison in comparisons):
        return State.WRONG
    return State.FOUND if broken else State.RIGHT


def _outside(runs: Sequence[Outputs]) -> Iterator[Broken]:
    """Outputs around which any run wrote."""
    for name in runs[0]:
        if not all(run[name].is_guarded for run in runs):
            text = f"memory around `{name}` was written"
            yield Broken(rule=OUTSIDE, place="", text=text)


def _input(name: str) -> Broken:
    text = f"input `{name}`, or memory around it, was written"
    return Broken(rule=INPUT, place="", text=text)


def _repeats(runs: Sequence[Outputs]) -> Iterator[Broken]:
    """Outputs whose bits are not the same in every run."""
    for name, first in runs[0].items():
        for number, run in enumerate(runs[1:], start=2):
            if found := _difference(first, run[name]):
                text = f"run {number} gave other bits of `{name}` than the first: {found}"
                yield Broken(rule=REPEATS, place="", text=text)
                break


def _difference(first: Guarded, other: Guarded) -> str:
    """How many elements differ in their bits, and the first of them; empty where none does."""
    one, two = (np.ascontiguousarray(g.values).view(np.uint8) for g in (first, other))
    if one.tobytes() == two.tobytes():
        return ""
    shape = first.values.shape
    unlike = (one != two).reshape(*shape, first.values.itemsize).any(-1)
    at = np.unravel_index(int(unlike.argmax()), shape)
    where = ", ".join(str(int(i)) for i in at)
    return f"{counted(int(unlike.sum()), 'element')}, the first at [{where}]"
