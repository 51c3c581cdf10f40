"""The contents of a bundle as values, without bytes of the format."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelpack.spec.artifact import Resources
from kernelpack.spec.variant import Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A compiled variant, as the writer takes it.

    Attributes:
        variant: the kernel and how to launch it.
        resources: what its cubin says of itself.
        image: the cubin.
        target: what ptxas was asked for.
        ptx_digest: SHA-256 of the PTX that was assembled, lower-case hex.
        source_digest: SHA-256 of the rendered source and its headers, lower-case hex.

    """

    variant: Variant
    resources: Resources
    image: bytes = field(repr=False)
    target: str
    ptx_digest: str
    source_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """An entry of an index, without what a launch needs (`Bundle.variant` reads that).

    Registers count for one thread; sizes are bytes; digests are lower-case hex.
    """

    id: str
    symbol: str
    kernel: str
    abi: int
    target: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_bytes: int
    parameter_bytes: int
    image_bytes: int
    image_digest: str
    ptx_digest: str
    source_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """A bundle's provenance.

    Attributes:
        kernelpack: the version that built it.
        toolchain: its name, such as `cuda-13.4`.
        front_end: `nvrtc` or `nvcc`.
        release: the CUDA release, such as `13.4`; a driver must be new enough for it.
        toolchain_digest: SHA-256 over the compilers and headers, lower-case hex.
        versions: the toolchain's parts, name to version.
        sources: manifests and templates, path under their folder to SHA-256.
        shard: which part of a build it is (see shard.py); empty where it is all of one.
        licences: SPDX expressions of those sources that state one, by path.

    """

    kernelpack: str
    toolchain: str
    front_end: str
    release: str
    toolchain_digest: str
    versions: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    shard: str = ""
    licences: Mapping[str, str] = field(default_factory=dict)

    @property
    def licence(self) -> str:
        """The licence of all kernels as one SPDX expression; empty unless each manifest has one."""
        found = [self.licences.get(path) for path in self.sources if path.startswith("manifests/")]
        stated = sorted({licence for licence in found if licence})
        return " AND ".join(stated) if all(found) else ""
