"""`check --rebuild`: entries of a bundle made again from their sources, and compared bit by bit.

The sources must be those that the bundle names, the toolchain the one that it was built with; the
cache takes no part. Compilers give the same bytes for the same input, so any difference shows that
the bundle is not what its sources say.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import ceil
from pathlib import Path

from kernelpack.build.finish import toolchain_digest
from kernelpack.build.make import Product, Task, make
from kernelpack.build.steps import Steps
from kernelpack.bundle.entry import Record
from kernelpack.bundle.reader import Bundle, open_entries
from kernelpack.check.finding import Finding, finding
from kernelpack.spec.artifact import digest
from kernelpack.spec.variant import Variant
from kernelpack.toolchain.locate import Toolchain
from kernelpack.toolchain.scratch import scratch


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where a bundle's sources are.

    Attributes:
        manifests: at least those that it was built from; others are left alone.
        templates: the folder of templates, with `include/` in it.
        cuda_home: where the toolchain `system` lies.
        kernels: folders of your own kernels, with their templates.

    """

    manifests: tuple[Path, ...]
    templates: Path
    cuda_home: Path | None = None
    kernels: tuple[Path, ...] = ()

    def find(self, path: str) -> Path | None:
        """The file that a bundle knows by this path; None if it is not here."""
        kind, _, name = path.partition("/")
        named = {manifest.name: manifest for manifest in self.manifests}
        own = {folder.name: folder.parent for folder in self.kernels}
        inside = name.removeprefix("include/")
        beside = own.get(inside.partition("/")[0])
        in_templates = beside / inside if beside else self.templates / name
        found = named.get(name) if kind == "manifests" else in_templates
        return found if found and found.is_file() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The outcome of a rebuild: how many entries were checked, and which differ.

    No entry was where the sources or compilers are others than the bundle's: `findings` names them.
    """

    entries: int
    findings: tuple[Finding, ...]


def rebuild(path: Path, sources: Sources, percent: float, steps: Steps | None = None) -> Rebuilt:
    """Differences between a bundle and a rebuild of a sample of its entries.

    Args:
        path: the bundle.
        sources: what it was built from.
        percent: how many of its entries, above 0 and at most 100; at least one is made. The same
            bundle gives the same sample.
        steps: the functions of a build; tests put others in their place.

    Raises:
        KernelpackError: the bundle cannot be read, a manifest does not hold together, or the
            toolchain is not here.

    """
    bundle, steps = open_entries(path), steps or Steps()
    made = bundle.provenance
    toolchain = steps.find(made.toolchain, made.front_end, root=sources.cuda_home)
    if found := (*_sources(bundle, sources), *_toolchain(bundle, toolchain)):
        return Rebuilt(entries=0, findings=found)
    records = sample(bundle, percent)
    differences = _Rebuild(bundle, sources, steps, toolchain).compare(records)
    return Rebuilt(entries=len(records), findings=tuple(differences))


def sample(bundle: Bundle, percent: float) -> list[Record]:
    """Entries spread over the bundle, by a digest of the root and their id."""
    records = sorted(
        bundle.records(), key=lambda r: sha256(f"{bundle.root}{r.id}".encode()).digest()
    )
    return records[: ceil(len(records) * percent / 100)]


def _sources(bundle: Bundle, sources: Sources) -> Iterator[Finding]:
    """Every source that is missing, or is not what the bundle was built from."""
    for path, wanted in bundle.provenance.sources.items():
        file = sources.find(path)
        if file is None:
            yield Finding(
                where=path,
                what=f"is not here, and {bundle.path} was built from it",
                hint="give its manifests with --manifest, and their folder with --templates",
            )
        elif digest(file.read_bytes()) != wanted:
            yield Finding(
                where=str(file),
                what=f"is not what {bundle.path} was built from",
                hint="check out the state of the sources that it was built from",
            )


def _toolchain(bundle: Bundle, toolchain: Toolchain) -> Iterator[Finding]:
    made = bundle.provenance
    if made.toolchain_digest != toolchain_digest(toolchain):
        yield Finding(
            where=str(bundle.path),
            what=f"was built with other compilers than those here: {dict(made.versions)}, "
            f"here {dict(toolchain.versions)}",
            hint="install the versions that it names",
        )


class _Rebuild:
    """Entries made again."""

    def __init__(
        self, bundle: Bundle, sources: Sources, steps: Steps, toolchain: Toolchain
    ) -> None:
        self._bundle, self._sources = bundle, sources
        self._steps, self._toolchain = steps, toolchain
        self._variants = self._expand()

    def _expand(self) -> Mapping[str, Variant]:
        """The variants of the bundle's manifests, by id."""
        wanted = self._bundle.provenance.sources
        paths = [path for path in self._sources.manifests if f"manifests/{path.name}" in wanted]
        manifests = map(self._steps.load, paths)
        return {v.id: v for manifest in manifests for v in self._steps.expand(manifest, None)}

    def compare(self, records: Sequence[Record]) -> Iterator[Finding]:
        """The differences, in the order in which the compilers end."""
        known = [record for record in records if self._is_stated(record)]
        for record in records:
            if record not in known:
                what = "the manifests say otherwise: other parameters, launch, guards or cost"
                yield self._finding(record, what)
        with scratch() as cache:
            tasks = [self._task(record, cache) for record in known]
            at_once = len(os.sched_getaffinity(0))
            for done in self._steps.run(make, tasks, at_once):
                record = known[done.index]
                if done.error:
                    yield finding(done.error, f"{self._bundle.path}: {record.id}")
                elif done.value and (what := _difference(record, tasks[done.index], done.value)):
                    yield self._finding(record, f"the {what} differs from that of a rebuild")

    def _is_stated(self, record: Record) -> bool:
        return self._variants.get(record.id) == self._bundle.variant(record.id)

    def _task(self, record: Record, cache: Path) -> Task:
        variant = self._variants[record.id]
        return Task(
            source=self._steps.render(variant, self._sources.templates, self._sources.kernels),
            arch=variant.arch,
            toolchain=self._toolchain,
            cache=cache,
            compilers=self._steps.compilers,
        )

    def _finding(self, record: Record, what: str) -> Finding:
        made = self._bundle.provenance.kernelpack
        hint = f"built by kernelpack {made}; if you run that version too, do not trust this bundle"
        return Finding(where=f"{self._bundle.path}: {record.id}", what=what, hint=hint)


def _difference(record: Record, task: Task, product: Product) -> str:
    """The first stage whose result is another than the bundle's; empty where none is."""
    stages = {
        "source": (record.source_digest, task.source.digest),
        "PTX": (record.ptx_digest, product.ptx.digest),
        "machine code": (record.image_digest, digest(product.assembled.cubin.image)),
    }
    return next((name for name, (ours, theirs) in stages.items() if ours != theirs), "")
