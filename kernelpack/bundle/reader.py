"""Read bundles: refuse what is damaged, then trust only what was checked.

Opening checks the header, and the first page of the index against the root. Finding an entry
checks the pages that it reads, loading an image checks the image, `verify_all` checks every byte.
Every mistake in a file is a `BundleError`; memory stays below what the file states and the limits
of `format`. A bundle may be shared between threads; its file is open while it is in use.
"""

from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from kernelpack.bundle.catalog import Catalog
from kernelpack.bundle.document import document
from kernelpack.bundle.entry import Entry, Provenance, Record
from kernelpack.bundle.file import BundleFile
from kernelpack.bundle.format import (
    DAMAGED,
    MAX_DOCUMENTS_BYTES,
    MAX_SIGNATURE_BYTES,
    Holds,
    Part,
    Section,
)
from kernelpack.bundle.frames import Decompressor
from kernelpack.bundle.header import Header, check_parts, read_header, root_of
from kernelpack.bundle.images import Images
from kernelpack.bundle.provenance import from_pairs
from kernelpack.bundle.sections import Sections
from kernelpack.bundle.signature import Keys, check_signature
from kernelpack.bundle.tree import CheckedIndex
from kernelpack.errors import BundleError
from kernelpack.spec.arch import Capability
from kernelpack.spec.artifact import Ptx, Resources
from kernelpack.spec.params import Slot
from kernelpack.spec.variant import Variant


def open_bundle(path: Path, keys: Keys | None = None) -> "Bundle":
    """Open a bundle of cubins or of PTX.

    Args:
        path: its file.
        keys: who must have signed it, one of these; checked before the index is read. None: nobody
            need have.

    Raises:
        BundleError: the file is missing, is something else, is truncated or damaged, or is of a
            format that this version does not read; it is not signed as asked; says what to do.

    """
    file = BundleFile(path)
    header = read_header(file)
    if keys is not None:
        check_signature(file, header, keys)
    return Bundle(path, file, header)


def open_entries(path: Path, keys: Keys | None = None) -> "Bundle":
    """Open a bundle of cubins.

    Raises:
        BundleError: as of `open_bundle`, or it is a bundle of PTX.

    """
    bundle = open_bundle(path, keys)
    bundle.require_entries()
    return bundle


def twin_of(path: Path) -> Path:
    """Where the PTX of a bundle lies: `X.ptx.kpk` beside `X.kpk`."""
    return path.parent / f"{path.name.removesuffix('.kpk')}.ptx.kpk"


class Bundle:
    """An open bundle.

    Attributes:
        path: its file.
        root: the root digest of its index, lower-case hex.
        compressor: the version of zstd that wrote its frames, 10507 for 1.5.7.
        holds: whether its images are cubins or PTX.

    Raises:
        BundleError: from every method, where the file is damaged.

    """

    def __init__(self, path: Path, file: BundleFile, header: Header) -> None:
        self.path = path
        self.root = header.root.hex()
        self.compressor = header.compressor
        self._file, self._header = file, header
        index, tree = header.parts[Part.INDEX], header.parts[Part.TREE]
        self._sections = Sections(CheckedIndex(file, index, tree, header.root), file.where)
        self.holds = self._sections.holds
        self._catalog = Catalog(self._sections)
        self._images = Images(file, header.parts, self._sections)

    def _part(self, part: Part, most: int) -> bytes:
        extent = self._header.parts[part]
        if extent.size > most:
            raise self._file.refuse(f"{extent.size} bytes of {part.name.lower()}; at most {most}")
        return self._file.read(extent.offset, extent.size)

    def __len__(self) -> int:
        return len(self._catalog)

    def require_entries(self) -> None:
        """Refuse a bundle of PTX, which lies beside the one that was probably meant."""
        if self.holds is Holds.PTX:
            meant = f"{self.path.name.removesuffix('.kpk').removesuffix('.ptx')}.kpk"
            raise BundleError(
                "holds PTX by digest, no entries",
                where=str(self.path),
                hint=f"give the bundle beside it, `{meant}`",
            )

    @property
    def paths(self) -> tuple[Path, ...]:
        """Its file alone; `Joined` has several."""
        return (self.path,)

    @property
    def where(self) -> str:
        """Its file, for messages."""
        return str(self.path)

    @property
    def size(self) -> int:
        """The bytes of its file."""
        return self._file.size

    def verified_bytes(self) -> bytes:
        """The whole file as it is open, whatever lies at its path now.

        Raises:
            BundleError: it was changed since it was opened.

        """
        data = self._file.read(0, self.size)
        if root_of(data) != self.root:
            raise self._file.refuse("it was changed while it was in use")
        return data

    @property
    def signature(self) -> bytes:
        """The bytes of its signature; empty where it is unsigned."""
        return self._part(Part.SIGNATURE, MAX_SIGNATURE_BYTES)

    @property
    def kernels(self) -> Mapping[str, tuple[int, ...]]:
        """The stem of every kernel, with the ABI numbers it is held in."""
        found: dict[str, tuple[int, ...]] = {}
        for stem, abi in self._catalog.kernels():
            found[stem] = (*found.get(stem, ()), abi)
        return found

    @property
    def targets(self) -> Mapping[str, tuple[Capability, ...]]:
        """Each target, with the capabilities that the bundle lists for it."""
        return self._catalog.targets()

    @property
    def provenance(self) -> Provenance:
        """The bundle's provenance."""
        text = self._sections.text
        rows = self._sections.rows(Section.PROVENANCE)
        pairs = [(text((key, size)), text((at, n))) for key, size, at, n in rows]
        keys = [key for key, _ in pairs]
        if keys != sorted(set(keys)):
            self._sections.refuse("provenance is not sorted by key")
        return from_pairs(dict(pairs))

    def find(self, variant_id: str) -> Record:
        """The entry of an id.

        Raises:
            BundleError: there is none; names the nearest.

        """
        return self._catalog.record(self._catalog.find(variant_id))

    def holds_entry(self, variant_id: str) -> bool:
        """Whether there is an entry of an id."""
        return self._catalog.holds(variant_id)

    def holding(self, variant_id: str) -> "Bundle":
        """The bundle that holds an entry: this one; `Joined` has several."""
        self._catalog.find(variant_id)
        return self

    def records(self, kernel: str | None = None) -> tuple[Record, ...]:
        """The entries of a kernel, or of all, by kernel and id."""
        return tuple(map(self._catalog.record, self._catalog.rows(kernel)))

    def variant(self, variant_id: str) -> Variant:
        """The variant of an id, equal to the one that was written."""
        return self._catalog.variant(self._catalog.find(variant_id))

    def variants(self, kernel: str | None = None) -> tuple[Variant, ...]:
        """The variants of a kernel, or of all, by kernel and id.

        Those of a target that this version does not know cannot run here and are left out;
        `records` and `targets` name them.
        """
        rows = filter(self._catalog.is_known, self._catalog.rows(kernel))
        return tuple(map(self._catalog.variant, rows))

    def resources(self, variant_id: str) -> Resources:
        """What the cubin of an id recorded of itself when it was built."""
        return self._catalog.resources(self._catalog.find(variant_id))

    def slots(self, variant_id: str) -> tuple[Slot, ...]:
        """Where the cubin of an id expects each parameter, in the signature's order."""
        return self.resources(variant_id).slots

    def image(self, variant_id: str) -> bytes:
        """The cubin of an id, after its digest was checked."""
        number = self._catalog.image_number(self._catalog.find(variant_id))
        return self._images.read(number, f"{self.path}: {variant_id}")

    def frame_bytes(self, variant_id: str) -> int:
        """The bytes that the cubin of an id takes in the file."""
        return self._images.frame_bytes(self._catalog.image_number(self._catalog.find(variant_id)))

    def entry(self, variant_id: str) -> Entry:
        """The entry of an id as the writer took it, for a bundle made of parts of others."""
        record = self.find(variant_id)
        return Entry(
            variant=self.variant(variant_id),
            resources=self.resources(variant_id),
            image=self.image(variant_id),
            target=record.target,
            ptx_digest=record.ptx_digest,
            source_digest=record.source_digest,
        )

    def ptx(self, digest: str) -> Ptx:
        """The PTX of a digest, out of this bundle or the twin beside it.

        Raises:
            BundleError: the twin is missing or does not hold it.

        """
        if self.holds is Holds.PTX:
            return Ptx(text=self._utf8(self._images.find(digest), f"PTX {digest}"))
        if not self._twin.holds_image(digest):
            raise BundleError(
                f"no PTX of digest {digest}: it is of another build than its bundle",
                where=str(self._twin.path),
                hint=f"it comes together with {self.path.name}: build, or copy, both",
            )
        return self._twin.ptx(digest)

    def holds_image(self, digest: str) -> bool:
        """Whether an image of this digest is here."""
        return self._images.holds(digest)

    @cached_property
    def _twin(self) -> "Bundle":
        path = twin_of(self.path)
        if not path.exists():
            hint = "install the PTX wheel, or build: `kernelpack build` writes both files"
            raise BundleError("the PTX of this bundle is missing", where=str(path), hint=hint)
        twin = open_bundle(path)
        if twin.holds is not Holds.PTX:
            raise BundleError("holds cubins, not PTX", where=str(path), hint="build it again")
        return twin

    def documents(self) -> Mapping[str, str]:
        """Every entry as canonical JSON, by id; for people."""
        where = f"{self.path}: documents"
        frame = self._part(Part.DOCUMENTS, MAX_DOCUMENTS_BYTES)
        lines = Decompressor(b"").decompress(frame, self._sections.documents_bytes, where)
        if sha256(lines).digest() != self._sections.documents_digest:
            raise BundleError("not what their digest says", where=where, hint=DAMAGED)
        ids, count = self._catalog.ids(), lines.count(b"\n")
        if count != len(ids):  # before they become objects of their own, for there may be millions
            raise self._file.refuse(f"{count} documents of {len(ids)} entries")
        texts = self._utf8(lines, "documents").split("\n")[:-1]
        return dict(zip(ids, texts, strict=True))

    def _utf8(self, data: bytes, what: str) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise self._file.refuse(f"{what}: not UTF-8, {error.reason}") from error

    def verify_all(self) -> None:
        """Check every byte: parts, index, images, documents; rebuild every variant.

        Raises:
            BundleError: names the first mistake.

        """
        check_parts(self._file, self._header)
        self._sections.index.read(0, len(self._sections.index))
        self._catalog.check()
        self._images.verify()
        self._verify_documents()

    def _verify_documents(self) -> None:
        """Check what people read against what programs read."""
        documents = self.documents()
        for row, record in zip(self._catalog.rows(), self.records(), strict=True):
            if not self._catalog.is_known(row):
                continue
            digests = {
                "image": record.image_digest,
                "ptx": record.ptx_digest,
                "source": record.source_digest,
            }
            text = document(self._catalog.variant(row), self._catalog.resources(row), digests)
            if text.decode() != documents[record.id]:
                raise self._file.refuse(f"the JSON of `{record.id}` is not what its records say")
