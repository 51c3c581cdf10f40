"""The story of a build, and the only file that knows its order.

    load → expand → check budgets → render → check signature → key
        → [ compile → assemble → inspect ] → check_resources → look → write

Workers do the steps in brackets, once for each key (see make.py); `look` beside them, in
batches (see lint.py). A variant that fails does not stop the others; a bundle is replaced only
where none failed.
"""

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace

from kernelpack.build.budget import check_resources
from kernelpack.build.choose import choose
from kernelpack.build.explain import History
from kernelpack.build.finish import Files, files_key, finish, finished, place, provenance_of
from kernelpack.build.key import variant_key
from kernelpack.build.lint import Lints, Made, refusal
from kernelpack.build.make import Product, Task, cached_product, make, store_product
from kernelpack.build.options import Options, Outcome, Progress, Report, State, Unwatched
from kernelpack.build.output import check_names, check_output
from kernelpack.build.signature import check_signature, check_threads
from kernelpack.build.steps import Steps
from kernelpack.build.unchanged import inputs_key, recall, remember
from kernelpack.bundle.entry import Entry, Provenance
from kernelpack.bundle.index import check_variant
from kernelpack.bundle.reader import open_bundle
from kernelpack.bundle.shard import Shard, whole_of
from kernelpack.cache.key import Key
from kernelpack.cache.location import default_root
from kernelpack.cache.shared import open_store
from kernelpack.cache.store import ServesOnlyError, Store
from kernelpack.errors import CacheError, KernelpackError
from kernelpack.machine_code.disassembler import absent
from kernelpack.spec.artifact import Ptx
from kernelpack.spec.variant import Variant
from kernelpack.toolchain.known_bad import scan
from kernelpack.toolchain.locate import Toolchain
from kernelpack.toolchain.scratch import scratch
from kernelpack.workers.pool import Finished

READERS = 16
"""How many objects of the cache are asked for at a time."""


def build(options: Options, progress: Progress | None = None, steps: Steps | None = None) -> Report:
    """Build one bundle from manifests.

    A variant's failure is part of the report; what fails the build as a whole is raised.

    Raises:
        KernelpackError: a manifest, the toolchain, the cache or the output is at fault.

    """
    start = time.monotonic()
    steps = steps or Steps()
    check_names(options.manifests)
    check_output(options.output)
    toolchain = steps.find(options.toolchain, options.front_end, root=options.cuda_home)
    with _store(options) as store:
        pipeline = _Pipeline(options, steps, toolchain, progress or Unwatched(), store)
        if options.dry_run:
            pipeline.plan()
            files = None
        else:
            files = pipeline.replay() or pipeline.run()
    changed = place(files, options.output) if files else False
    return Report(
        outcomes=pipeline.outcomes,
        bundle=options.output,
        root=open_bundle(options.output).root if files else "",
        written=changed,
        toolchain=str(toolchain),
        seconds=time.monotonic() - start,
        packing_seconds=pipeline.packing_seconds,
        trouble=store.trouble or pipeline.trouble,
        unlinted="" if pipeline.linter else absent(),
    )


def _store(options: Options) -> AbstractContextManager[Store]:
    root = options.cache_dir or default_root()
    return open_store(root, options.remote_cache, read_only=options.remote_read_only)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """A variant on its way: what to make, and all that this depends on."""

    variant: Variant
    task: Task
    key: Key


class _Pipeline:
    """One build on its way to the bytes of its files, and what became of each variant."""

    def __init__(
        self,
        options: Options,
        steps: Steps,
        toolchain: Toolchain,
        progress: Progress,
        store: Store,
    ) -> None:
        self._options, self._steps, self._toolchain = options, steps, toolchain
        self._progress, self._store = progress, store
        disassembler = steps.disassembler()
        self.linter = str(disassembler or "")
        self._lints = Lints(store, disassembler, steps.look)
        self._inputs = inputs_key(options, toolchain, self.linter)
        self._ids: tuple[str, ...] = ()
        self._shard: Shard | None = None
        self._outcomes: dict[str, Outcome] = {}
        self.packing_seconds = 0.0
        self.trouble = ""

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """In the order of the variants."""
        return tuple(self._outcomes[variant_id] for variant_id in self._ids)

    def replay(self) -> Files | None:
        """The finished files of a build of the same inputs, if there was one."""
        known = recall(self._store, self._inputs)
        if known:
            self._begin(known.variants)
            self._tell_cached()
        return known.files if known else None

    def run(self) -> Files | None:
        """The finished files; None if a variant failed."""
        jobs = list(self._render(self._variants()))
        history = self._history(jobs)
        provenance = self._provenance(jobs)
        key = files_key({job.variant.id: job.key for job in jobs}, provenance, self.linter)
        files = None if self._failed else finished(self._store, key, self._ids)
        if files:
            self._tell_cached()
        else:
            made = list(self._make(jobs, history))
            self._lint()
            if not self._failed:
                files = self._pack(key, made, provenance)
        unedited = self._inputs == inputs_key(self._options, self._toolchain, self.linter)
        with suppress(CacheError):  # one that only serves cannot say next time what changed
            self._remember(jobs, history)
            if files and unedited:
                remember(self._store, self._inputs, self._ids, key)
        return files

    def _pack(self, key: str, made: Sequence[tuple[Entry, Ptx]], provenance: Provenance) -> Files:
        self._progress.pack()
        start = time.monotonic()
        files = finish(self._store, key, made, provenance, self._steps)
        self.packing_seconds = time.monotonic() - start
        return files

    def plan(self) -> None:
        """Report what would be compiled, and why; make nothing."""
        jobs = list(self._render(self._variants()))
        history = self._history(jobs)
        for job, product in self._cached(jobs):
            if product:
                self._tell(Outcome(variant_id=job.variant.id, state=State.CACHED))
            else:
                reasons = history.reasons(job.variant, job.key)
                self._tell(Outcome(variant_id=job.variant.id, state=State.STALE, reasons=reasons))

    def _variants(self) -> tuple[Variant, ...]:
        variants = choose(self._options, self._steps)
        self._steps.check_budgets(variants)
        if self._options.shard:
            whole = whole_of(variant.id for variant in variants)
            self._shard = replace(self._options.shard, whole=whole)
            variants = self._shard.part(variants)
        self._begin(tuple(variant.id for variant in variants))
        return variants

    def _render(self, variants: Sequence[Variant]) -> Iterator[_Job]:
        for variant in variants:
            try:
                check_variant(variant)
                options = self._options
                source = self._steps.render(variant, options.templates, options.kernels)
                check_signature(variant, source)
            except KernelpackError as error:
                self._tell(Outcome(variant_id=variant.id, state=State.FAILED, error=error))
                continue
            task = Task(
                source=source,
                arch=variant.arch,
                toolchain=self._toolchain,
                cache=self._store.root,
                compilers=self._steps.compilers,
            )
            key = variant_key(source, self._toolchain, variant.arch)
            yield _Job(variant=variant, task=task, key=key)

    def _history(self, jobs: Sequence[_Job]) -> History:
        return History(self._store, (job.variant.kernel for job in jobs))

    def _provenance(self, jobs: Sequence[_Job]) -> Provenance:
        sources = [job.task.source for job in jobs]
        made = provenance_of(self._toolchain, self._options.manifests, sources)
        return replace(made, shard=str(self._shard)) if self._shard else made

    def _make(self, jobs: Sequence[_Job], history: History) -> Iterator[tuple[Entry, Ptx]]:
        """The bundle's contents: first from the cache, then from the compilers as they end."""
        missing = []
        for job, product in self._cached(jobs):
            if product:
                outcome = Outcome(variant_id=job.variant.id, state=State.CACHED)
                yield from self._accept(job, product, outcome)
            else:
                missing.append(job)
        if missing:
            self._progress.compile(len(missing))
        with self._tasks(missing) as tasks:
            yield from self._made(missing, tasks, history)

    @contextmanager
    def _tasks(self, missing: Sequence[_Job]) -> Iterator[list[Task]]:
        """The tasks of what is missing: kept in the cache, or nowhere where that only serves us.

        A cluster's machines need one cache to hand on what they make, so they go without none.
        """
        tasks = [job.task for job in missing]
        try:
            if missing:
                self._store.prepare()
        except ServesOnlyError as error:
            if self._options.scheduler:
                raise
            self.trouble = f"{error.where}: {error.what}; what was made is not kept"
        if not self.trouble:
            yield tasks
            return
        with scratch() as folder:
            yield [replace(task, cache=folder) for task in tasks]

    def _made(
        self, missing: Sequence[_Job], tasks: Sequence[Task], history: History
    ) -> Iterator[tuple[Entry, Ptx]]:
        """The compilers' products, as they end."""
        for done in self._compile(tasks):
            job = missing[done.index]
            outcome = Outcome(
                variant_id=job.variant.id,
                state=_state(done),
                reasons=history.reasons(job.variant, job.key),
                seconds=done.seconds,
                error=done.error,
                killed_by=done.killed_by,
            )
            if done.value:
                if not self.trouble:
                    store_product(self._store, job.task, done.value)
                yield from self._accept(job, done.value, outcome)
            else:
                self._tell(outcome)

    def _cached(self, jobs: Sequence[_Job]) -> Iterator[tuple[_Job, Product | None]]:
        """Each one's products in the cache; many at a time, for a disk or a remote may be far."""
        with ThreadPoolExecutor(READERS) as threads:
            yield from zip(jobs, threads.map(self._find, jobs), strict=True)

    def _find(self, job: _Job) -> Product | None:
        return cached_product(self._store, job.task)

    def _compile(self, tasks: Sequence[Task]) -> Iterator[Finished[Product]]:
        """Have every task made, here or by a cluster."""
        scheduler = self._options.scheduler
        run = self._steps.cluster(scheduler) if scheduler else self._steps.run
        return run(make, tasks, self._options.jobs or len(os.sched_getaffinity(0)))

    def _accept(self, job: _Job, product: Product, outcome: Outcome) -> Iterator[tuple[Entry, Ptx]]:
        """The entry of a product that is what its manifest says."""
        cubin, resources = product.assembled.cubin, product.assembled.resources
        try:
            check_resources(job.variant, resources)
            check_threads(job.variant, product.ptx)
        except KernelpackError as error:
            self._tell(replace(outcome, state=State.FAILED, error=error))
            return
        warnings = tuple(map(str, scan(cubin, self._toolchain)))
        self._tell(replace(outcome, warnings=warnings))
        self._lints.add(Made(variant_id=job.variant.id, entry=job.variant.entry, cubin=cubin))
        entry = Entry(
            variant=job.variant,
            resources=resources,
            image=cubin.image,
            target=cubin.target,
            ptx_digest=product.ptx.digest,
            source_digest=job.task.source.digest,
        )
        yield entry, product.ptx

    def _lint(self) -> None:
        """Note what is wrong with the machine code that was made; waits until all was looked at."""
        for made, findings in self._lints.findings():
            outcome = self._outcomes[made.variant_id]
            if error := refusal(made, findings):
                outcome = replace(outcome, state=State.FAILED, error=error)
            warnings = tuple(str(finding) for finding in findings if not finding.is_refused)
            self._outcomes[made.variant_id] = replace(
                outcome, warnings=(*outcome.warnings, *warnings)
            )

    def _remember(self, jobs: Sequence[_Job], history: History) -> None:
        """Note the keys of what was built, for the reasons of the next build."""
        built = [job for job in jobs if self._outcomes[job.variant.id].state is not State.FAILED]
        history.remember({job.variant: job.key for job in built})

    def _begin(self, ids: tuple[str, ...]) -> None:
        self._ids = ids
        self._progress.begin(len(ids))

    def _tell_cached(self) -> None:
        for variant_id in self._ids:
            self._tell(Outcome(variant_id=variant_id, state=State.CACHED))

    @property
    def _failed(self) -> bool:
        return any(outcome.state is State.FAILED for outcome in self._outcomes.values())

    def _tell(self, outcome: Outcome) -> None:
        self._outcomes[outcome.variant_id] = outcome
        self._progress.tell(outcome)


def _state(done: Finished[Product]) -> State:
    if done.value is None:
        return State.FAILED
    return State.COMPILED if done.value.fresh else State.CACHED  # another process was faster
