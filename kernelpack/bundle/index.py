"""Entries as the index of a bundle: every table sorted, so that their order does not matter."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from kernelpack.bundle.document import document
from kernelpack.bundle.encode import Encoder, encode_names, encode_numbers
from kernelpack.bundle.entry import Entry, Provenance
from kernelpack.bundle.format import ROWS, Holds, Section
from kernelpack.bundle.pool import Pool
from kernelpack.bundle.provenance import to_pairs
from kernelpack.bundle.sections import pack_index
from kernelpack.errors import BundleError
from kernelpack.spec.arch import Arch
from kernelpack.spec.params import block_bytes
from kernelpack.spec.variant import DEVICE_SIZES, Number, Size, Variant

DEVICE_NAMES = {"sm_count": "multiprocessors of the device"}
"""What each of `DEVICE_SIZES` means, in their order."""

assert tuple(DEVICE_NAMES) == DEVICE_SIZES


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index with what it speaks of: images in its order, and the documents of its entries."""

    data: bytes
    images: tuple[bytes, ...]
    documents: bytes


Signature = tuple[str, int, tuple[Size, ...], tuple[Number, ...]]
"""The identity of a kernel: stem, ABI number, sizes, numbers."""


def index_cubins(entries: Sequence[Entry], provenance: Provenance) -> Index:
    """The index of compiled variants.

    Raises:
        BundleError: two entries of one id, or an entry that contradicts itself; names the id.

    """
    held = _sorted(entries)
    return _index(Holds.CUBIN, held, [entry.image for entry in held.values()], provenance)


def check_variant(variant: Variant) -> None:
    """Refuse a variant that no index can hold, before anything is compiled for it.

    Raises:
        BundleError: a text, a list or an expression is too long for the format; names the variant.

    """
    pool, names = Pool(), _names(variant.sizes)
    Encoder(pool, [size.name for size in names]).variant(variant, variant.slots, 0)
    try:
        encode_names(pool, names)
        encode_numbers(pool, variant.numbers)
        for text in (variant.kernel, variant.id, variant.entry):
            pool.text(text)
    except BundleError as error:
        raise BundleError(error.what, where=variant.id, hint=error.hint) from None


def index_ptx(texts: Sequence[bytes], provenance: Provenance) -> Index:
    """The index of PTX texts, each once."""
    return _index(Holds.PTX, {}, texts, provenance)


def _index(
    holds: Holds, held: dict[bytes, Entry], images: Sequence[bytes], provenance: Provenance
) -> Index:
    pool, unique = Pool(), _unique(images)
    kernels = sorted({_signature(entry) for entry in held.values()}, key=_order)
    targets = sorted({entry.target for entry in held.values()})
    documents = b"".join(_document(entry) + b"\n" for entry in held.values())
    rows = {
        Section.TARGETS: _target_rows(pool, targets),
        Section.KERNELS: _kernel_rows(pool, held, kernels),
        Section.PROVENANCE: _provenance_rows(pool, provenance),
        Section.ENTRIES: _entry_rows(pool, held, unique, kernels, targets),
        Section.IMAGES: _image_rows(unique),
    }
    if any(numbers for *_, numbers in kernels):
        rows[Section.NUMBERS] = _number_rows(pool, kernels)
    pools = {Section.STRINGS: pool.strings, Section.RECORDS: pool.records}
    data = pack_index(holds, rows | pools, len(documents), sha256(documents).digest())
    return Index(data=data, images=tuple(unique.values()), documents=documents)


def _provenance_rows(pool: Pool, provenance: Provenance) -> bytes:
    row = ROWS[Section.PROVENANCE]
    pairs = to_pairs(provenance).items()
    return b"".join(row.pack(*pool.text(key), *pool.text(value)) for key, value in pairs)


def _sorted(entries: Sequence[Entry]) -> dict[bytes, Entry]:
    """Entries by the digest of their id, in the order of the table."""
    held: dict[bytes, Entry] = {}
    for entry in entries:
        _check(entry)
        key = sha256(entry.variant.id.encode()).digest()
        if key in held:
            raise BundleError("two entries of one id", where=entry.variant.id)
        held[key] = entry
    return dict(sorted(held.items()))


def _check(entry: Entry) -> None:
    """Check an entry's parts against each other."""
    variant, resources = entry.variant, entry.resources
    pairs = [
        ("target", entry.target, variant.arch.name),
        ("target of the cubin", resources.target, entry.target),
        ("entry of the cubin", resources.entry, variant.entry),
        ("parameters of the cubin", resources.slots, variant.slots),
    ]
    for what, found, expected in pairs:
        if found != expected:
            raise BundleError(f"the {what} is {found}, not {expected}", where=variant.id)


def _unique(images: Sequence[bytes]) -> dict[bytes, bytes]:
    """Images by digest, sorted, each once."""
    return dict(sorted((sha256(image).digest(), image) for image in images))


def _signature(entry: Entry) -> Signature:
    variant = entry.variant
    return variant.kernel, variant.abi, variant.sizes, variant.numbers


def _order(signature: Signature) -> tuple[str, int, list[tuple[str, str]], list[str]]:
    stem, abi, sizes, numbers = signature
    return stem, abi, [(size.name, size.doc) for size in sizes], list(map(repr, numbers))


def _names(sizes: Sequence[Size]) -> list[Size]:
    return [*sizes, *(Size(name=name, doc=doc) for name, doc in DEVICE_NAMES.items())]


def _entry_rows(
    pool: Pool,
    held: dict[bytes, Entry],
    images: dict[bytes, bytes],
    kernels: list[Signature],
    targets: list[str],
) -> bytes:
    image_numbers = {digest: number for number, digest in enumerate(images)}
    encoders = {key: Encoder(pool, [size.name for size in _names(key[2])]) for key in kernels}
    numbers = {key: number for number, key in enumerate(kernels)}
    rows = []
    for key, entry in held.items():
        signature = _signature(entry)
        number = numbers[signature]
        variant = encoders[signature].variant(entry.variant, entry.resources.slots, number)
        image = image_numbers[sha256(entry.image).digest()]
        rows.append(
            _entry_row(pool, key, entry, (image, number, targets.index(entry.target), variant))
        )
    return b"".join(rows)


def _entry_row(pool: Pool, key: bytes, entry: Entry, places: tuple[int, int, int, int]) -> bytes:
    resources = entry.resources
    return ROWS[Section.ENTRIES].pack(
        key,
        bytes.fromhex(entry.source_digest),
        bytes.fromhex(entry.ptx_digest),
        *places,
        *pool.text(entry.variant.id),
        *pool.text(entry.variant.entry),
        resources.registers,
        resources.shared_bytes,
        resources.stack_bytes,
        resources.spill_bytes,
        block_bytes(resources.slots),
        0,
    )


def _image_rows(images: dict[bytes, bytes]) -> bytes:
    row = ROWS[Section.IMAGES]
    return b"".join(row.pack(digest, len(image)) for digest, image in images.items())


def _kernel_rows(pool: Pool, held: dict[bytes, Entry], kernels: list[Signature]) -> bytes:
    """One row a kernel, with the rows of its entries by id."""
    members: dict[Signature, list[tuple[str, int]]] = {key: [] for key in kernels}
    for number, entry in enumerate(held.values()):
        members[_signature(entry)].append((entry.variant.id, number))
    rows = []
    for kernel in kernels:
        stem, abi, sizes, _ = kernel
        names = encode_names(pool, _names(sizes))
        entries = pool.list([row for _, row in sorted(members[kernel])], most=len(held))
        row = (*pool.text(stem), abi, len(sizes), *names, *entries)
        rows.append(ROWS[Section.KERNELS].pack(*row))
    return b"".join(rows)


def _number_rows(pool: Pool, kernels: list[Signature]) -> bytes:
    """One row a kernel that has numbers."""
    row = ROWS[Section.NUMBERS]
    return b"".join(
        row.pack(place, 0, *encode_numbers(pool, numbers))
        for place, (*_, numbers) in enumerate(kernels)
        if numbers
    )


def _target_rows(pool: Pool, targets: list[str]) -> bytes:
    rows = []
    for target in targets:
        capabilities = [major << 16 | minor for major, minor in Arch(target).capabilities]
        rows.append(ROWS[Section.TARGETS].pack(*pool.text(target), *pool.list(capabilities)))
    return b"".join(rows)


def _document(entry: Entry) -> bytes:
    digests = {
        "image": sha256(entry.image).hexdigest(),
        "ptx": entry.ptx_digest,
        "source": entry.source_digest,
    }
    return document(entry.variant, entry.resources, digests)
