"""One run: inputs from the case, the launch from the variant, the emulator, then the oracle."""

import time
from functools import lru_cache

from kernelpack.emulator.call import Call, call
from kernelpack.emulator.faults import Finding
from kernelpack.emulator.ptx.parser import Program, parse
from kernelpack.emulator.run import Result
from kernelpack.errors import KernelpackError, UnsupportedError
from kernelpack.kernels import held
from kernelpack.kernels.definition import Arrays, Definition
from kernelpack.spec.variant import Variant
from kernelpack.verify.compare import Comparison, compare
from kernelpack.verify.job import Job
from kernelpack.verify.known import Cases
from kernelpack.verify.outcome import Broken, Ended, Outcome, State

STEP_LIMIT = 50_000_000
"""Warp instructions after which a run is given up; a run of hours is no verification."""

_CASES = Cases()

INPUT = "input-written"
"""The rule that a kernel breaks that writes to an argument which it may only read."""


def prove(job: Job, variant: Variant, ptx: str, definition: Definition) -> Outcome:
    """Run a job and check what it computes against the oracle.

    An error of the kernel, its launch or the emulator is part of the outcome.

    Raises:
        OracleError: the oracle is at fault.

    """
    start = time.process_time()
    arrays = _CASES.inputs(definition, job.case)
    held.check_inputs(definition, arrays, variant, job.sizes)
    try:
        called = call(
            _program(ptx),
            variant,
            job.sizes,
            arrays,
            schedule=job.schedule,
            seed=job.seed,
            level=job.level,
            step_limit=STEP_LIMIT,
        )
    except UnsupportedError as error:
        return Outcome(job=job, state=State.UNSUPPORTED, ended=_ended(error))
    except KernelpackError as error:
        return Outcome(job=job, state=State.FAULT, ended=_ended(error))
    return _judge(job, variant, called, definition, arrays, start)


def _judge(
    job: Job, variant: Variant, called: Call, definition: Definition, arrays: Arrays, start: float
) -> Outcome:
    result, plan = called.result, called.plan
    comparisons = _comparisons(job, variant, called, definition, arrays)
    broken = (*map(_broken, result.findings), *map(_input, called.disturbed))
    return Outcome(
        job=job,
        state=_state(result, comparisons, broken),
        cluster=(plan.cluster.x, plan.cluster.y, plan.cluster.z),
        ctas=plan.grid.count,
        comparisons=comparisons,
        broken=broken,
        ended=None if result.error is None else _ended(result.error),
        steps=result.steps,
        seconds=time.process_time() - start,
    )


def _comparisons(
    job: Job, variant: Variant, called: Call, definition: Definition, arrays: Arrays
) -> tuple[Comparison, ...]:
    """Every output beside the oracle's; none if the run ended early."""
    if called.result.error is not None:
        return ()
    expected = _CASES.expected(definition, job.case, arrays)
    held.check_expected(definition, expected, variant, job.sizes)
    outputs = called.outputs.items()
    return tuple(compare(name, array, expected[name].on(variant.arch)) for name, array in outputs)


def _state(
    result: Result, comparisons: tuple[Comparison, ...], broken: tuple[Broken, ...]
) -> State:
    if result.error is not None:
        return State.FAULT
    if not all(comparison.is_right for comparison in comparisons):
        return State.WRONG
    return State.FOUND if broken else State.RIGHT


def _input(name: str) -> Broken:
    """The finding that a kernel wrote to what it may only read."""
    text = f"input `{name}` was written: its manifest says that the kernel only reads it"
    return Broken(rule=INPUT, place="", text=text)


def _broken(finding: Finding) -> Broken:
    return Broken(rule=finding.rule.name, place=finding.place, text=str(finding))


def _ended(error: KernelpackError) -> Ended:
    """The error; its place is the source line, where it names one after CTA and warp."""
    _, dash, place = error.where.rpartition(" — ")
    return Ended(kind=type(error).__name__, text=str(error), place=place if dash else "")


@lru_cache(maxsize=4)
def _program(ptx: str) -> Program:
    return parse(ptx)
