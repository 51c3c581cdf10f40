"""A build's options, its progress and its report: values, no printing."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from kernelpack.bundle.shard import Shard
from kernelpack.errors import KernelpackError
from kernelpack.spec.arch import Arch


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A request.

    Attributes:
        manifests: the files to build, all into one bundle.
        templates: the folder of templates, with `include/` in it.
        output: the bundle, `X.kpk`; its PTX goes beside it, into `X.ptx.kpk`.
        targets: build for these only; all of each manifest's if None.
        toolchain: a name that `toolchain.locate.find` knows.
        front_end: `nvrtc` or `nvcc`.
        cuda_home: where the toolchain `system` lies.
        jobs: the most compiles at once on this machine; one a core if None.
        scheduler: the address of a dask scheduler whose workers compile; this machine if empty.
        keep: an expression over variant ids (see `spec.filter`); empty keeps all.
        cache_dir: where what was made is kept; the user's cache folder if None.
        shard: build only this part of the variants; all of them if None.
        remote_cache: a URL, for fsspec, of objects that machines share; none if empty.
        remote_read_only: take from there and put nothing.
        dry_run: say what would be compiled, and make nothing.
        kernels: folders of your own kernels, with their templates.

    """

    manifests: tuple[Path, ...]
    templates: Path
    output: Path
    targets: tuple[Arch, ...] | None = None
    toolchain: str = "cuda-13.4"
    front_end: str = "nvrtc"
    cuda_home: Path | None = None
    jobs: int | None = None
    scheduler: str = ""
    keep: str = ""
    cache_dir: Path | None = None
    shard: Shard | None = None
    remote_cache: str = ""
    remote_read_only: bool = False
    dry_run: bool = False
    kernels: tuple[Path, ...] = ()


class State(StrEnum):
    """How a variant fared."""

    CACHED = "cached"
    COMPILED = "compiled"
    STALE = "stale"  # a dry run would have compiled it
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one variant.

    Attributes:
        variant_id: which.
        state: how it fared.
        reasons: why the cache did not serve it: what changed since it was built last.
        seconds: how long its compile took.
        error: why it failed.
        killed_by: the signal that ended its first attempt, such as `SIGKILL`; else empty.
        warnings: what is known of its compiler, or seen in its code, that a user should know.

    """

    variant_id: str
    state: State
    reasons: tuple[str, ...] = ()
    seconds: float = 0.0
    error: KernelpackError | None = None
    killed_by: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report of a build; outcomes are in the order of the variants.

    Attributes:
        outcomes: one a variant.
        bundle: the file asked for.
        root: the bundle's root digest; empty where none was made.
        written: whether the file changed.
        toolchain: what compiled it, as people read it.
        seconds: how long it all took.
        packing_seconds: how long the entries took to become files; 0 where the files were known.
        trouble: why the remote cache was given up on the way, or nothing was kept; else empty.
        unlinted: why nobody looked at the machine code; empty where it was done.

    """

    outcomes: tuple[Outcome, ...] = field(repr=False)
    bundle: Path
    root: str
    written: bool
    toolchain: str
    seconds: float
    packing_seconds: float = 0.0
    trouble: str = ""
    unlinted: str = ""

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """The variants that failed; where there is one, no bundle was written."""
        return tuple(o for o in self.outcomes if o.state is State.FAILED)

    def count(self, state: State) -> int:
        """How many variants fared so."""
        return sum(o.state is state for o in self.outcomes)


class Progress(Protocol):
    """Whoever watches a build."""

    def begin(self, total: int) -> None:
        """So many variants will be reported."""

    def compile(self, count: int) -> None:
        """So many of them are in no cache, and are compiled now."""

    def tell(self, outcome: Outcome) -> None:
        """One variant is done; in the order in which they end."""

    def pack(self) -> None:
        """All are done, and become files."""


class Unwatched:
    """The progress of a build that nobody watches."""

    def begin(self, total: int) -> None:
        """Nothing."""

    def compile(self, count: int) -> None:
        """Nothing."""

    def tell(self, outcome: Outcome) -> None:
        """Nothing."""

    def pack(self) -> None:
        """Nothing."""
