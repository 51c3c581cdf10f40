"""The story of a build, and the only file that knows its order.

    load → expand → check budgets → render → key → [ compile → assemble → inspect ] → hold → write

What is in brackets happens in workers and once for each key (see make.py). A variant that fails
does not stop the others; a bundle is replaced only where none failed.
"""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kernelpack.build.budget import hold
from kernelpack.build.choose import choose
from kernelpack.build.explain import History
from kernelpack.build.finish import Files, files_key, finish, finished, place, provenance_of
from kernelpack.build.key import Key, variant_key
from kernelpack.build.make import Product, Task, held, make
from kernelpack.build.options import Options, Outcome, Progress, Report, State, Unwatched
from kernelpack.build.schedule import Finished
from kernelpack.build.steps import Steps
from kernelpack.bundle.entry import Entry, Provenance
from kernelpack.bundle.reader import open_bundle
from kernelpack.cache.location import default_root
from kernelpack.cache.store import Store
from kernelpack.errors import KernelpackError
from kernelpack.spec.artifact import Ptx
from kernelpack.spec.variant import Variant
from kernelpack.toolchain.known_bad import scan
from kernelpack.toolchain.locate import Toolchain


def build(options: Options, progress: Progress | None = None, steps: Steps | None = None) -> Report:
    """Build one bundle from manifests.

    A variant's failure is part of the report; what fails the build as a whole is raised.

    Raises:
        KernelpackError: a manifest, the toolchain, the cache or the output is at fault.

    """
    start = time.monotonic()
    steps = steps or Steps()
    toolchain = steps.find(options.toolchain, options.front_end, root=options.cuda_home)
    variants = choose(options, steps)
    steps.check_budgets(variants)
    road = _Road(options, steps, toolchain, variants, progress or Unwatched())
    files = road.walk()
    changed = place(files, options.output) if files else False
    return Report(
        outcomes=road.outcomes,
        bundle=options.output,
        root=open_bundle(options.output).root if files else "",
        written=changed,
        toolchain=str(toolchain),
        seconds=time.monotonic() - start,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """A variant on its way: what to make, and all that this depends on."""

    variant: Variant
    task: Task
    key: Key


class _Road:
    """One build from its variants to the bytes of its files, and what became of each variant."""

    def __init__(
        self,
        options: Options,
        steps: Steps,
        toolchain: Toolchain,
        variants: Sequence[Variant],
        progress: Progress,
    ) -> None:
        self._options, self._steps, self._toolchain = options, steps, toolchain
        self._variants, self._progress = variants, progress
        self._store = Store(options.cache_dir or default_root())
        self._history = History(self._store, (variant.kernel for variant in variants))
        self._outcomes: dict[str, Outcome] = {}

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """In the order of the variants."""
        return tuple(self._outcomes[variant.id] for variant in self._variants)

    def walk(self) -> Files | None:
        """The finished files; None if a variant failed or none were asked for."""
        self._progress.begin(len(self._variants))
        jobs = list(self._render())
        if self._options.dry_run:
            self._foretell(jobs)
            return None
        provenance = self._provenance(jobs)
        key = files_key({job.variant.id: job.key for job in jobs}, provenance)
        files = None if self._failed else finished(self._store, key)
        if files:
            self._tell_cached(jobs)
        else:
            self._store.prepare()
            made = list(self._make(jobs))
            if not self._failed:
                files = finish(self._store, key, made, provenance, self._steps)
        self._remember(jobs)
        return files

    def _render(self) -> Iterator[_Job]:
        for variant in self._variants:
            try:
                source = self._steps.render(variant, self._options.templates)
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

    def _provenance(self, jobs: Sequence[_Job]) -> Provenance:
        sources = [job.task.source for job in jobs]
        options = self._options
        return provenance_of(self._toolchain, options.manifests, sources, options.templates)

    def _make(self, jobs: Sequence[_Job]) -> Iterator[tuple[Entry, Ptx]]:
        """What goes into the bundle: first from the cache, then from the compilers as they end."""
        missing = []
        for job in jobs:
            if product := held(job.task):
                outcome = Outcome(variant_id=job.variant.id, state=State.CACHED)
                yield from self._accept(job, product, outcome)
            else:
                missing.append(job)
        at_once = self._options.jobs or len(os.sched_getaffinity(0))
        for done in self._steps.run(make, [job.task for job in missing], at_once):
            job = missing[done.index]
            outcome = self._outcome(job, done)
            if done.value:
                yield from self._accept(job, done.value, outcome)
            else:
                self._tell(outcome)

    def _accept(self, job: _Job, product: Product, outcome: Outcome) -> Iterator[tuple[Entry, Ptx]]:
        """The entry of a product that is what its manifest says."""
        cubin, resources = product.assembled.cubin, product.assembled.resources
        try:
            hold(job.variant, resources)
        except KernelpackError as error:
            self._tell(replace(outcome, state=State.FAILED, error=error))
            return
        warnings = tuple(map(str, scan(cubin, self._toolchain)))
        self._tell(replace(outcome, warnings=warnings))
        entry = Entry(
            variant=job.variant,
            resources=resources,
            image=cubin.image,
            target=cubin.target,
            ptx_digest=product.ptx.digest,
            source_digest=job.task.source.digest,
        )
        yield entry, product.ptx

    def _outcome(self, job: _Job, done: Finished[Product]) -> Outcome:
        return Outcome(
            variant_id=job.variant.id,
            state=State.FAILED if done.error else State.COMPILED,
            reasons=self._reasons(job),
            seconds=done.seconds,
            error=done.error,
            killed_by=done.killed_by,
        )

    def _tell_cached(self, jobs: Sequence[_Job]) -> None:
        for job in jobs:
            self._tell(Outcome(variant_id=job.variant.id, state=State.CACHED))

    def _foretell(self, jobs: Sequence[_Job]) -> None:
        for job in jobs:
            if held(job.task):
                self._tell(Outcome(variant_id=job.variant.id, state=State.CACHED))
            else:
                reasons = self._reasons(job)
                self._tell(Outcome(variant_id=job.variant.id, state=State.STALE, reasons=reasons))

    def _reasons(self, job: _Job) -> tuple[str, ...]:
        return self._history.reasons(job.variant.kernel, job.variant.id, job.key)

    def _remember(self, jobs: Sequence[_Job]) -> None:
        """Note the keys of what was built, for the reasons of the next build."""
        for kernel in dict.fromkeys(job.variant.kernel for job in jobs):
            built = {job.variant.id: job.key for job in jobs if self._is_built(kernel, job)}
            self._history.remember(kernel, built)

    def _is_built(self, kernel: str, job: _Job) -> bool:
        outcome = self._outcomes[job.variant.id]
        return job.variant.kernel == kernel and outcome.state is not State.FAILED

    @property
    def _failed(self) -> bool:
        return any(outcome.state is State.FAILED for outcome in self._outcomes.values())

    def _tell(self, outcome: Outcome) -> None:
        self._outcomes[outcome.variant_id] = outcome
        self._progress.tell(outcome)
