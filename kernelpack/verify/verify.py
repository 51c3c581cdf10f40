"""The story of a verification: plan the runs, take what the cache has, run the rest, report.

    variants → plan → key → [ prove ] → outcomes → report

Workers do the steps in brackets; each keeps its outcome in the cache as soon as it has it,
so that a run that was interrupted goes on where it stopped.
"""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import chain, groupby
from pathlib import Path
from typing import Protocol

from kernelpack.bundle.reader import Bundle, open_entries
from kernelpack.cache.location import default_root
from kernelpack.cache.store import Store
from kernelpack.emulator.core import attempt
from kernelpack.errors import KernelpackError, ToolchainError
from kernelpack.kernels import cases
from kernelpack.kernels.definition import Definition
from kernelpack.kernels.registry import Kernels
from kernelpack.kernels.registry import known as known_kernels
from kernelpack.spec.filter import filtered
from kernelpack.verify.job import Job
from kernelpack.verify.key import code_of, emulator_version, job_key, oracle_version
from kernelpack.verify.outcome import Ended, Outcome, State
from kernelpack.verify.plan import Planner, Scope, weight
from kernelpack.verify.prove import prove
from kernelpack.verify.record import decode, encode
from kernelpack.verify.report import Report
from kernelpack.workers.garbage import rare_search
from kernelpack.workers.pool import Runner, run_workers

BATCHES_A_WORKER = 8
"""At least, so that workers end at about the same time."""

PACE = 8e-6
"""Seconds for an element of a run's arguments; kernels and machines differ, by a few times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A request.

    Attributes:
        bundle: the file; its PTX twin lies beside it.
        keep: an expression over variant ids; empty keeps all.
        scope: which runs.
        jobs: the most runs at once; one a core if None.
        cache_dir: where outcomes are kept; the user's cache folder if None.
        kernels: folders of kernels of one's own, beside those that are installed.

    """

    bundle: Path
    keep: str = ""
    scope: Scope = field(default_factory=Scope)
    jobs: int | None = None
    cache_dir: Path | None = None
    kernels: tuple[Path, ...] = ()


class Progress(Protocol):
    """Whoever watches."""

    def begin(self, total: int, seconds: float = 0) -> None:
        """So many runs will be reported; the expected seconds."""

    def tell(self, outcome: Outcome) -> None:
        """One run is done; in the order in which they end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A job with everything that a worker needs to do it, and the key to keep it under."""

    job: Job
    bundle: Path
    root: str
    cache: Path
    key: str
    kernels: tuple[Path, ...] = ()
    oracle: str = ""


def verify(options: Options, progress: Progress, run: Runner = run_workers) -> Report:
    """Verify a bundle's variants on the emulator.

    A variant that is wrong is part of the report; what keeps a verification from being made at all
    is raised.

    Raises:
        KernelpackError: the bundle, its twin, the choice or the cache is at fault.

    """
    start = time.monotonic()
    bundle = open_entries(options.bundle)
    kernels = known_kernels(options.kernels)
    planners = _planners(bundle, options.scope, kernels)
    if not planners:
        raise without_oracle(bundle, kernels)
    ids = tuple(v.id for v in filtered([v for p in planners for v in p.variants], options.keep))
    wanted = set(ids)
    with rare_search():
        jobs = [job for planner in planners for job in planner.jobs(wanted.__contains__)]
        tasks = _tasks(bundle, jobs, options, planners)
    known = {task.job: outcome for task in tasks if (outcome := _kept(task))}
    missing = _by_key(task for task in tasks if task.job not in known)
    if missing:
        attempt.core()  # compiled before workers begin, which would all wait for it
    at_once = options.jobs or len(os.sched_getaffinity(0))
    seconds = _foreseen(bundle, [alike[0] for alike in missing]) / at_once
    progress.begin(len(tasks), seconds)
    outcomes = {}
    for outcome in chain(known.values(), _outcomes(missing, at_once, run)):
        progress.tell(outcome)
        outcomes[outcome.job] = outcome
    selecting = {v.id: len(p.selected(v)) for p in planners for v in p.variants if v.id in wanted}
    return Report(
        bundle=options.bundle,
        root=bundle.root,
        scope=options.scope,
        emulator=emulator_version(),
        oracle=oracle_version(*(planner.definition.version for planner in planners)),
        ids=tuple(entry.id for entry in bundle.records()),
        ptx={v: bundle.find(v).ptx_digest for v in ids},
        selecting=selecting,
        outcomes=tuple(outcomes[job] for job in jobs),
        seconds=time.monotonic() - start,
    )


def _planners(bundle: Bundle, scope: Scope, kernels: Kernels) -> list[Planner]:
    """One a kernel whose meaning is known."""
    found = [
        Planner(definition=kernels[stem], variants=bundle.variants(stem), scope=scope)
        for stem in bundle.kernels
        if stem in kernels
    ]
    for planner in found:
        cases.check(planner.definition, planner.variants[0])
    return found


def without_oracle(bundle: Bundle, kernels: Kernels) -> KernelpackError:
    """The error of a bundle of kernels that have no definition."""
    there = ", ".join(bundle.kernels) or "nothing"
    return KernelpackError(
        f"nothing to verify: it holds {there}, and no oracle is known for that",
        where=str(bundle.path),
        hint=f"name the kernel's folder with --kernels; known are {', '.join(kernels)}",
    )


def _tasks(
    bundle: Bundle, jobs: Sequence[Job], options: Options, planners: Sequence[Planner]
) -> list[Task]:
    versions = {planner.definition.stem: planner.definition.version for planner in planners}
    variants = {v.id: v for v in bundle.variants()}
    digests = {v: bundle.find(v).ptx_digest for v in {job.variant_id: job for job in jobs}}
    codes = {held: code_of(bundle.ptx(held).text) for held in set(digests.values())}
    cache = options.cache_dir or default_root()
    return [
        Task(
            job=job,
            bundle=bundle.path,
            root=bundle.root,
            cache=cache,
            key=job_key(
                job,
                variants[job.variant_id],
                codes[digests[job.variant_id]],
                versions[job.kernel],
            ).digest,
            kernels=options.kernels,
            oracle=versions[job.kernel],
        )
        for job in jobs
    ]


def _by_key(tasks: Iterable[Task]) -> list[list[Task]]:
    """Tasks that have one outcome together: those of the same PTX for two targets."""
    found: dict[str, list[Task]] = {}
    for task in tasks:
        found.setdefault(task.key, []).append(task)
    return list(found.values())


def _kept(task: Task) -> Outcome | None:
    """The cached results of a task."""
    return Store(task.cache).known(task.key, partial(decode, job=task.job))


def _foreseen(bundle: Bundle, tasks: Sequence[Task]) -> float:
    """Seconds of a processor that they may take."""
    variants = {v.id: v for v in bundle.variants()}
    jobs = [task.job for task in tasks]
    return sum(weight(variants[j.variant_id], j.case, j.sm_count) * PACE for j in jobs)


def _outcomes(missing: Sequence[Sequence[Task]], at_once: int, run: Runner) -> Iterator[Outcome]:
    """The workers' results, as they end; of like tasks only the first runs."""
    most = len(missing) // (BATCHES_A_WORKER * at_once)
    batches = list(_batches(missing, max(1, most)))
    for done in run(work, [[alike[0] for alike in batch] for batch in batches], at_once):
        batch = batches[done.index]
        if done.error is not None and not isinstance(done.error, ToolchainError):
            raise done.error
        if done.value is not None:
            yield from chain.from_iterable(map(_spread, batch, done.value))
        elif len(batch) > 1:  # the worker was killed, twice: by one of these
            yield from _outcomes_alone(batch, run)
        else:
            ended = Ended(kind=type(done.error).__name__, text=str(done.error))
            yield from (Outcome(job=t.job, state=State.FAULT, ended=ended) for t in batch[0])


def _outcomes_alone(batch: Sequence[Sequence[Task]], run: Runner) -> Iterator[Outcome]:
    """The results of tasks that did not all come to an end in one worker: each has its own."""
    for alike in batch:
        known = _kept(alike[0])
        yield from (
            _spread(alike, replace(known, cached=False)) if known else _outcomes([alike], 1, run)
        )


def _spread(alike: Sequence[Task], outcome: Outcome) -> Iterator[Outcome]:
    """The outcome of the first of like tasks, for each of them."""
    for task in alike:
        yield replace(outcome, job=task.job)
        outcome = replace(outcome, cached=True)


def _batches(missing: Iterable[Sequence[Task]], most: int) -> Iterator[list[Sequence[Task]]]:
    """Neighbours that run one program, so that one worker reads it; so many at most."""
    for _, group in groupby(missing, key=lambda alike: alike[0].job.variant_id):
        alikes = list(group)
        yield from (alikes[at : at + most] for at in range(0, len(alikes), most))


def work(tasks: Sequence[Task]) -> list[Outcome]:
    """Do jobs in a worker, and keep the outcome of each.

    Raises:
        KernelpackError: the bundle changed under the worker, the cache cannot be written, or the
            oracle is at fault.

    """
    found: list[Outcome] = []
    kept: list[Future[None]] = []
    with ThreadPoolExecutor(1) as keeper:  # a disk takes as long as a small run
        for task in tasks:
            found.append(_done(task))
            kept.append(keeper.submit(_keep, task, found[-1]))
    for each in kept:
        each.result()
    return found


def _keep(task: Task, outcome: Outcome) -> None:
    Store(task.cache).put(task.key, encode(outcome))


def _done(task: Task) -> Outcome:
    bundle = _opened(task.bundle, task.root)
    variant_id = task.job.variant_id
    ptx = bundle.ptx(bundle.find(variant_id).ptx_digest)
    definition = _definition(task.kernels, task.job.kernel, task.oracle)
    return prove(task.job, bundle.variant(variant_id), ptx.text, definition)


@lru_cache(maxsize=16)
def _definition(kernels: tuple[Path, ...], stem: str, version: str) -> Definition:
    found = known_kernels(kernels)[stem]
    if found.version != version:
        raise KernelpackError("the oracle changed while it was asked", where=found.origin)
    return found


@lru_cache(maxsize=2)
def _opened(path: Path, root: str) -> Bundle:
    bundle = open_entries(path)
    if bundle.root != root:
        raise KernelpackError("the bundle changed while it was verified", where=str(path))
    return bundle
