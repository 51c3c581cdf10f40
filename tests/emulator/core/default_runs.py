"""What `kernelpack verify` runs by default on bundles, as launches for both engines."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from unittest.mock import patch

from kernelpack.bundle.reader import open_entries
from kernelpack.emulator.call import call
from kernelpack.emulator.prepare import Dependent
from kernelpack.emulator.ptx.parser import parse
from kernelpack.emulator.schedule import Schedule
from kernelpack.kernels.registry import KERNELS
from kernelpack.kernels.registry import known as known_kernels
from kernelpack.verify import verify
from kernelpack.verify.job import Job
from kernelpack.verify.plan import Scope, weight
from tests.emulator.core.compare import Both, both


class Ended(Exception):  # noqa: N818
    """A launch was compared; nothing is to be done with it any more."""

    def __init__(self, found: Both) -> None:
        super().__init__("compared")
        self.found = found


def compared(program, variant, sizes, arrays, *, schedule, seed=0, **limit) -> Both:
    """What both engines make of a variant's launch on numpy arrays."""

    def run(program, plan, memory, **_):
        raise Ended(both(Dependent(program=program, plan=plan), memory, chosen, **limit))

    chosen = Schedule.parse(schedule, seed)
    try:
        with patch("kernelpack.emulator.call.run", run):
            call(program, variant, sizes, arrays)
    except Ended as ended:
        return ended.found
    raise AssertionError("it was not launched")


@dataclass(frozen=True)
class Default:
    """A default run of a bundle."""

    bundle: Path
    job: Job
    weight: float

    @property
    def name(self) -> str:
        return f"{self.job.variant_id} {self.job.words}"

    @property
    def kind(self) -> str:
        target = next(a for a in self.job.variant_id.split("arch=")[1:])
        return f"{self.job.kernel} {target.partition(',')[0].rstrip(']')}"

    def compare(self) -> dict:
        """What to write of it."""
        job = self.job
        if job.schedule == "overlapping":
            return {"difference": "", "ended": "overlapping: Python's alone"}
        bundle = _opened(self.bundle)
        variant = bundle.variant(job.variant_id)
        program = _program(self.bundle, bundle.find(job.variant_id).ptx_digest)
        arrays = KERNELS[job.kernel].inputs(job.case)
        found = compared(program, variant, job.sizes, arrays, schedule=job.schedule, seed=job.seed)
        return told(found)


def told(found: Both) -> dict:
    """The lines of a run that both engines made."""
    python = found.python
    is_clean = not (python.findings or python.error)
    is_doubted = is_clean and bool(found.doubt)
    return {
        "difference": "" if is_doubted else found.difference,
        "ended": "doubted, so Python's"
        if is_doubted
        else f"same: {'clean' if is_clean else 'found'}",
        "doubt": found.doubt,
        "steps": python.steps,
        "events": found.events,
    }


@lru_cache(maxsize=4)
def _opened(path: Path):
    return open_entries(path)


@lru_cache(maxsize=4)
def _program(path: Path, digest: str):
    return parse(_opened(path).ptx(digest).text)


def tasks(bundles: Sequence[Path]) -> list[Default]:
    """Every default run, of alike ones (the same PTX for two targets) the first."""
    return [task for path in bundles for task in _of_bundle(path)]


def _of_bundle(path: Path) -> list[Default]:
    bundle = _opened(path)
    variants = {variant.id: variant for variant in bundle.variants()}
    planners = verify._planners(bundle, Scope(), known_kernels(()))
    jobs = [job for planner in planners for job in planner.jobs(variants.__contains__)]
    options = verify.Options(bundle=path)
    alike = verify._by_key(verify._tasks(bundle, jobs, options, planners))
    chosen = [tasks[0].job for tasks in alike]
    return [
        Default(path, job, weight(variants[job.variant_id], job.case, job.sm_count))
        for job in chosen
    ]
