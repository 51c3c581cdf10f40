"""The story of a bundle's wheels: check it, part it by architecture, wrap each part.

    X.kpk      → kernelpack_cubins_sm100-0.1.0-py3-none-any.whl, kernelpack_cubins_sm90-…
    X.ptx.kpk  → kernelpack_ptx_sm100-…: the PTX of the same entries, for those who emulate
    folders of kernels of one's own → kernelpack_kernels-…: their sources, for those who verify

A wheel is data: a bundle in a package without a module, its bill of materials, and an entry point
by which `kernelpack.load()` finds it. The same bundle gives the same bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelpack.bundle.entry import Record
from kernelpack.bundle.format import MAJOR
from kernelpack.bundle.header import root_of
from kernelpack.bundle.reader import Bundle, twin_of
from kernelpack.bundle.sbom import sbom
from kernelpack.bundle.signature import signed
from kernelpack.bundle.writer import encode, encode_ptx
from kernelpack.errors import BundleError
from kernelpack.kernels.folder import Folder
from kernelpack.spec.arch import architecture
from kernelpack.wheel.archive import archive
from kernelpack.wheel.axes import costs
from kernelpack.wheel.metadata import Metadata, package
from kernelpack.wheel.releases import requirement
from kernelpack.wheel.sources import sources

LIMIT_BYTES = 95_000_000
"""The largest wheel that is made; PyPI takes files of 100 MB unless it is asked."""

BUNDLE, TWIN = "kernels.kpk", "kernels.ptx.kpk"
SBOM = "sboms/kernels.cdx.json"
"""Where a wheel's metadata has its bill of materials (PEP 770)."""

DEAREST = 3
Files = Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel: the name of its file, what is in it, its bytes."""

    filename: str
    entries: int
    data: bytes = field(repr=False)


def wheels(
    bundle: Bundle,
    project: str = "kernelpack",
    version: str = "",
    key: Path | None = None,
    kernels: Sequence[Folder] = (),
) -> Iterator[Wheel]:
    """The wheels of a bundle, and of its PTX if that lies beside it, one for each architecture.

    Args:
        bundle: cubins of any number of targets.
        project: what the names begin with: `PROJECT-cubins-sm100`.
        version: of the wheels; that of the kernelpack that built the bundle if empty.
        key: a private key that signs the bundle of each wheel.
        kernels: those of one's own in the bundle, whose sources get a wheel of their own.

    Raises:
        BundleError: the bundle is damaged, holds nothing, no release runs it, or a wheel is too
            large; says which axes cost most.
        KernelpackError: the project or the version is not a valid wheel name.

    """
    bundle.require_entries()
    if shard := bundle.provenance.shard:
        hint = "`kernelpack merge` makes one bundle of all shards"
        raise BundleError(f"is shard {shard} of a build", where=bundle.where, hint=hint)
    bundle.verify_all()
    parts = _architectures(bundle)
    for name, records in parts.items():
        part = _Part(bundle, records, project, name, version, is_whole=len(parts) == 1)
        yield part.cubins(key)
        if twin_of(bundle.path).exists():
            yield part.ptx()
    if kernels:
        yield _of_sources(bundle, kernels, project, version or bundle.provenance.kernelpack)


def _of_sources(bundle: Bundle, kernels: Sequence[Folder], project: str, version: str) -> Wheel:
    """The wheel of the kernels' sources."""
    metadata, files = sources(bundle, kernels, project, version)
    data = archive({**files, **metadata.files()}, metadata.info)
    return Wheel(filename=metadata.filename, entries=len(kernels), data=data)


def _architectures(bundle: Bundle) -> Mapping[str, Sequence[Record]]:
    """Entries by architecture: `sm100` for sm_100a and sm_100f, `sm103` for sm_103a."""
    parts: dict[str, list[Record]] = {}
    for record in bundle.records():
        name = architecture(record.target).replace("_", "")
        parts.setdefault(name, []).append(record)
    if not parts:
        raise BundleError("holds no entries", where=str(bundle.path))
    return dict(sorted(parts.items()))


class _Part:
    """The entries of one architecture, as wheels."""

    def __init__(
        self,
        bundle: Bundle,
        records: Sequence[Record],
        project: str,
        label: str,
        version: str,
        *,
        is_whole: bool,
    ) -> None:
        self._bundle, self._records, self._is_whole = bundle, records, is_whole
        self._made = bundle.provenance
        self._version = version or self._made.kernelpack
        self._targets = ", ".join(sorted({record.target for record in records}))
        self._names = {kind: f"{project}-{kind}-{label}" for kind in ("cubins", "ptx")}

    def cubins(self, key: Path | None) -> Wheel:
        """The wheel that a server installs."""
        name = self._names["cubins"]
        metadata = Metadata(
            name=name,
            version=self._version,
            summary=f"{len(self._records)} CUDA kernels for {self._targets}, machine code",
            requires=requirement(MAJOR, self._kernels()),
            licence=self._made.licence,
            announces=package(name),
        )
        content = self._cubin_bytes()
        content = signed(content, key) if key else content
        materials = sbom(root_of(content), self._made, self._records)
        return self._wrap(metadata, {BUNDLE: content}, {SBOM: materials})

    def ptx(self) -> Wheel:
        """The wheel for those who emulate; it puts the PTX beside the cubins."""
        metadata = Metadata(
            name=self._names["ptx"],
            version=self._version,
            summary=f"PTX of {len(self._records)} CUDA kernels for {self._targets}",
            requires=f"{self._names['cubins']}=={self._version}",
            licence=self._made.licence,
        )
        return self._wrap(metadata, {TWIN: self._ptx_bytes()}, {})

    def _kernels(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, set[int]] = {}
        for record in self._records:
            found.setdefault(record.kernel, set()).add(record.abi)
        return {stem: tuple(sorted(abis)) for stem, abis in found.items()}

    def _cubin_bytes(self) -> bytes:
        """A whole bundle as it is, with its signature; a part of one is written anew."""
        if self._is_whole:
            return self._bundle.verified_bytes()
        return encode([self._bundle.entry(record.id) for record in self._records], self._made)

    def _ptx_bytes(self) -> bytes:
        texts = [self._bundle.ptx(record.ptx_digest) for record in self._records]
        return encode_ptx(texts, self._made)

    def _wrap(self, metadata: Metadata, content: Files, documents: Files) -> Wheel:
        folder = package(self._names["cubins"])
        files = {f"{folder}/{name}": data for name, data in content.items()}
        papers = {f"{metadata.info}/{name}": data for name, data in documents.items()}
        data = archive({**files, **papers, **metadata.files()}, metadata.info)
        self._check_size(metadata.filename, len(data))
        return Wheel(filename=metadata.filename, entries=len(self._records), data=data)

    def _check_size(self, filename: str, size: int) -> None:
        if size <= LIMIT_BYTES:
            return
        dearest = costs(self._bundle, (record.id for record in self._records))[:DEAREST]
        raise BundleError(
            f"{size / 1e6:.1f} MB; a wheel is at most {LIMIT_BYTES / 1e6:.0f} MB",
            where=filename,
            hint="cut values of an axis, the dearest first: " + "; ".join(map(str, dearest)),
        )
