"""A bundle as files that other tools read: a cubin, a JSON document and the PTX of each entry."""

import re
from collections.abc import Collection, Iterator
from hashlib import sha256
from pathlib import Path

from kernelpack.bundle.entry import Record
from kernelpack.bundle.reader import Bundle, twin_of
from kernelpack.errors import BundleError
from kernelpack.files import publish_all

STEM_BYTES = 160
"""The longest part of an id that is kept in a file name."""


def extract(bundle: Bundle, folder: Path, ids: Collection[str] | None = None) -> tuple[Path, ...]:
    """Write entries as files into a folder, which is made; all of them, or none.

    Args:
        bundle: where they come from; PTX is written where the twin lies beside it.
        folder: where the files go. A file of the same name is replaced, nothing else is touched.
        ids: the entries; None takes all.

    Returns:
        The files, in the order of the entries.

    Raises:
        BundleError: the bundle is damaged, or there is no such entry.
        KernelpackError: a file cannot be written.

    """
    bundle.require_entries()
    records = bundle.records() if ids is None else tuple(map(bundle.find, ids))
    documents = bundle.documents()
    _make(folder)
    return publish_all(
        (folder / f"{file_stem(record.id)}{end}", data)
        for record in records
        for end, data in _files(bundle, record, documents[record.id])
    )


def _files(bundle: Bundle, record: Record, document: str) -> Iterator[tuple[str, bytes]]:
    """The files of an entry: the end of each one's name, and its bytes."""
    yield ".cubin", bundle.image(record.id)
    yield ".json", f"{document}\n".encode()
    if twin_of(bundle.path).exists():
        yield ".ptx", bundle.ptx(record.ptx_digest).text.encode()


def file_stem(variant_id: str) -> str:
    """A name for an entry's files: letters, digits, `_ . = -`; different for different ids."""
    readable = re.sub(r"[^\w.=-]+", "_", variant_id, flags=re.ASCII).strip("._")
    return f"{readable[:STEM_BYTES]}-{sha256(variant_id.encode()).hexdigest()[:8]}"


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        raise BundleError(what, where=str(folder), hint="give a writable folder") from error
