"""The story of a verification on a GPU: plan, take what the cache has, run the rest, report.

    device, variants → plan → key → batches → [ prove ] → outcomes → report

Child processes do the steps in brackets; each keeps its outcome in the cache as soon as it
has it, so that a run that was interrupted goes on where it stopped.
"""

import os
import time
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from kernelpack.bundle.reader import Bundle, open_entries
from kernelpack.cache.location import default_root
from kernelpack.cache.store import Store
from kernelpack.device.batch import Batch, Task
from kernelpack.device.child import Connect
from kernelpack.device.children import Limits, Runner, run_children
from kernelpack.device.key import job_key
from kernelpack.device.machine import device_of, driver_words, machine_words
from kernelpack.device.plan import Planner
from kernelpack.device.report import DeviceReport
from kernelpack.errors import SelectionError
from kernelpack.kernels import cases
from kernelpack.kernels.definition import Case
from kernelpack.kernels.registry import Kernels, known
from kernelpack.load.load import load
from kernelpack.runtime.driver import Device, Driver, connect
from kernelpack.spec.filter import filtered
from kernelpack.spec.variant import Variant
from kernelpack.verify.job import Job
from kernelpack.verify.key import oracle_version
from kernelpack.verify.outcome import Outcome
from kernelpack.verify.plan import Scope, weight
from kernelpack.verify.record import decode
from kernelpack.verify.verify import Progress, without_oracle
from kernelpack.workers.memory import available_bytes

REPEATS = 3
LIMIT_S = 60.0
MOST_CHILDREN = 16
"""Each keeps a context of some hundred MB on the GPU."""
HOST_BYTES_AN_ELEMENT = 64
"""Of a case's arguments: inputs, the float64 oracle, its bounds, and an output being compared."""
BATCH_S, RUN_S, ELEMENT_S = 0.05, 0.03, 2e-7
"""Of a processor: for a case, for a run of it, and for an element of its arguments; about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A request.

    Attributes:
        bundle: the file.
        keep: an expression over variant ids; empty keeps all.
        device: the GPU's ordinal.
        repeats: how often each variant runs on a case; all must give the same bits.
        limit_s: how long a run may keep the GPU; then it has hung.
        jobs: the most processes at once; one a core if None.
        cache_dir: where outcomes are kept; the user's cache folder if None.
        kernels: folders of kernels of one's own, beside those that are installed.

    """

    bundle: Path
    keep: str = ""
    device: int = 0
    repeats: int = REPEATS
    limit_s: float = LIMIT_S
    jobs: int | None = None
    cache_dir: Path | None = None
    kernels: tuple[Path, ...] = ()


def verify(
    options: Options,
    progress: Progress,
    run: Runner = run_children,
    connect: Connect = connect,
) -> DeviceReport:
    """Verify a bundle's variants on a GPU.

    A variant that is wrong, or faults, is part of the report; what keeps a verification from being
    made at all is raised.

    Raises:
        KernelpackError: the bundle, the choice, the device, its driver or the cache is at fault.

    """
    start = time.monotonic()
    driver = connect()
    device = device_of(driver, options.device)
    load(options.bundle, driver=driver)  # refuses a driver that is too old, before work is begun
    bundle = open_entries(options.bundle)
    planners = _planners(bundle, device, driver, known(options.kernels))
    ids = tuple(v.id for v in filtered([v for p in planners for v in p.variants], options.keep))
    told = driver_words(driver, options.device)
    batches = _batches(bundle, planners, frozenset(ids), options, machine_words(device, told))
    outcomes = {}
    for outcome in _outcomes(batches, options, progress, run, connect):
        progress.tell(outcome)
        outcomes[outcome.job] = outcome
    jobs = [task.job for batch in batches for task in batch.tasks]
    return DeviceReport(
        bundle=options.bundle,
        root=bundle.root,
        scope=Scope(full=True),
        emulator="",
        oracle=oracle_version(*(planner.definition.version for planner in planners)),
        ids=tuple(entry.id for entry in bundle.records()),
        ptx={v: bundle.find(v).ptx_digest for v in ids},
        selecting={v: sum(job.selected for job in jobs if job.variant_id == v) for v in ids},
        outcomes=tuple(outcomes[job] for job in _in_order(jobs, ids)),
        seconds=time.monotonic() - start,
        device=device,
        driver=told,
        images={v: bundle.find(v).image_digest for v in ids},
        repeats=options.repeats,
    )


def _planners(bundle: Bundle, device: Device, driver: Driver, kernels: Kernels) -> list[Planner]:
    """One a kernel whose meaning is known and that the device can run.

    Raises:
        KernelpackError: there is none.

    """
    stems = [stem for stem in bundle.kernels if stem in kernels]
    if not stems:
        raise without_oracle(bundle, kernels)
    able = {stem: _able(bundle.variants(stem), device) for stem in stems}
    found = [
        Planner(definition=kernels[stem], variants=variants, device=device)
        for stem, variants in able.items()
        if variants
    ]
    for planner in found:
        cases.check(planner.definition, planner.variants[0])
    if not found:
        built = ", ".join(sorted({str(v.arch) for v in bundle.variants()}))
        raise SelectionError(
            "the bundle holds no kernel for this device",
            where=f"{bundle.path} on {device}, {driver}",
            hint=f"it is built for: {built}",
        )
    return found


def _able(variants: Sequence[Variant], device: Device) -> list[Variant]:
    return [v for v in variants if v.arch.runs_on(device.capability)]


def _batches(
    bundle: Bundle,
    planners: Iterable[Planner],
    wanted: frozenset[str],
    options: Options,
    machine: str,
) -> list[Batch]:
    """A batch a case; the largest first, so that none of them is waited for at the end."""
    variants = {v.id: v for p in planners for v in p.variants}
    versions = {p.definition.stem: p.definition.version for p in planners}

    def task(job: Job) -> Task:
        variant, image = variants[job.variant_id], bundle.find(job.variant_id).image_digest
        key = job_key(job, variant, image, machine, options.repeats, versions[job.kernel])
        return Task(job=job, key=key.digest)

    def batch(case: Case, jobs: tuple[Job, ...]) -> Batch:
        elements = weight(variants[jobs[0].variant_id], case, jobs[0].sm_count)
        return Batch(
            bundle=options.bundle,
            root=bundle.root,
            device=options.device,
            kernel=jobs[0].kernel,
            case=case,
            tasks=tuple(map(task, jobs)),
            repeats=options.repeats,
            cache=options.cache_dir or default_root(),
            kernels=options.kernels,
            host_bytes=elements * HOST_BYTES_AN_ELEMENT,
        )

    found = [batch(*pair) for planner in planners for pair in planner.cases(wanted)]
    return sorted(found, key=lambda batch: -batch.host_bytes)


def _outcomes(
    batches: Sequence[Batch], options: Options, progress: Progress, run: Runner, connect: Connect
) -> Iterable[Outcome]:
    """Results of the cache, then those of children."""
    store = Store(options.cache_dir or default_root())
    tasks = [task for batch in batches for task in batch.tasks]
    known = {
        task.job: outcome
        for task in tasks
        if (outcome := store.known(task.key, partial(decode, job=task.job)))
    }
    missing = [left for batch in batches if (left := _without(batch, known)).tasks]
    jobs = options.jobs or min(MOST_CHILDREN, len(os.sched_getaffinity(0)))
    progress.begin(len(tasks), sum(map(_seconds, missing)) / jobs)
    limits = Limits(jobs=jobs, seconds=options.limit_s, host_bytes=available_bytes())
    return chain(known.values(), run(connect, missing, limits))


def _without(batch: Batch, known: Container[Job]) -> Batch:
    """A batch less the runs that are known."""
    return replace(batch, tasks=tuple(task for task in batch.tasks if task.job not in known))


def _seconds(batch: Batch) -> float:
    """Of a processor that a batch may take."""
    elements = batch.host_bytes // HOST_BYTES_AN_ELEMENT
    return BATCH_S + len(batch.tasks) * RUN_S + elements * ELEMENT_S


def _in_order(jobs: Sequence[Job], ids: Sequence[str]) -> list[Job]:
    """A variant's runs together, in the bundle's order."""
    order = {variant_id: index for index, variant_id in enumerate(ids)}
    return sorted(jobs, key=lambda job: order[job.variant_id])
