"""What `kernelpack verify` runs by default on bundles, as launches for both engines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from unittest.mock import patch

from kernelpack.bundle.reader import open_entries
from kernelpack.emulator.call import call
from kernelpack.emulator.prepare import Dependent
from kernelpack.emulator.ptx.parser import Program, parse
from kernelpack.emulator.run import STEP_LIMIT
from kernelpack.emulator.schedule import Schedule
from kernelpack.kernels.registry import KERNELS
from kernelpack.kernels.registry import known as known_kernels
from kernelpack.verify import verify
from kernelpack.verify.job import Job
from kernelpack.verify.plan import Scope, weight
from tests.emulator.core.said import Launch, Said, judged


class Ended(Exception):  # noqa: N818
    """A launch was compared; nothing is to be done with it any more."""

    def __init__(self, line: dict) -> None:
        super().__init__("compared")
        self.line = line


def compared(
    text, variant, sizes, arrays, kept: Mapping[str, Said], *, schedule, seed=0,
    step_limit=STEP_LIMIT,
) -> dict:  # fmt: skip
    """What to write of a variant's launch on numpy arrays."""

    def run(program, plan, memory, **_):
        first = Dependent(program=program, plan=plan)
        raise Ended(judged(Launch(text, first, memory, chosen, step_limit), kept))

    chosen = Schedule.parse(schedule, seed)
    try:
        with patch("kernelpack.emulator.call.run", run):
            call(program(text), variant, sizes, arrays)
    except Ended as ended:
        return ended.line
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

    def compare(self, kept: Mapping[str, Said]) -> dict:
        """What to write of it."""
        job = self.job
        if job.schedule == "overlapping":
            return {"difference": "", "ended": "overlapping: Python's alone"}
        bundle = _opened(self.bundle)
        variant, text = bundle.variant(job.variant_id), _text(self.bundle, job.variant_id)
        arrays = KERNELS[job.kernel].inputs(job.case)
        how = {"schedule": job.schedule, "seed": job.seed}
        return compared(text, variant, job.sizes, arrays, kept, **how)


@lru_cache(maxsize=4)
def _opened(path: Path):
    return open_entries(path)


@lru_cache(maxsize=8)
def _text(path: Path, variant: str) -> str:
    bundle = _opened(path)
    return bundle.ptx(bundle.find(variant).ptx_digest).text


@lru_cache(maxsize=8)
def program(text: str) -> Program:
    """A program, read once."""
    return parse(text)


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
