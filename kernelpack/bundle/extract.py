"""A bundle as files that other tools read: a cubin, a JSON document and the PTX of each entry."""

import re
from collections.abc import Collection
from hashlib import sha256
from pathlib import Path

from kernelpack.bundle.entry import Record
from kernelpack.bundle.format import Holds
from kernelpack.bundle.reader import Bundle, twin_of
from kernelpack.errors import BundleError

STEM_BYTES = 160
"""The longest part of an id that is kept in a file name."""


def extract(bundle: Bundle, folder: Path, ids: Collection[str] | None = None) -> tuple[Path, ...]:
    """Write entries as files into a folder, which is made.

    Args:
        bundle: where they come from; PTX is written where the twin lies beside it.
        folder: where the files go. A file of the same name is replaced, nothing else is touched.
        ids: the entries; None takes all.

    Returns:
        The files, in the order of the entries.

    Raises:
        BundleError: the bundle is damaged, there is no such entry, or a file cannot be written.

    """
    if bundle.holds is Holds.PTX:
        hint = "give the bundle beside it, `X.kpk`"
        raise BundleError("holds PTX by digest, no entries", where=str(bundle.path), hint=hint)
    records = bundle.records() if ids is None else tuple(map(bundle.find, ids))
    documents = bundle.documents()
    written: list[Path] = []
    for record in records:
        stem = file_stem(record.id)
        for end, data in _files(bundle, record, documents[record.id]).items():
            written.append(_put(folder / f"{stem}{end}", data))
    return tuple(written)


def _files(bundle: Bundle, record: Record, document: str) -> dict[str, bytes]:
    """What to write for an entry, by the end of its file's name."""
    files = {".cubin": bundle.image(record.id), ".json": f"{document}\n".encode()}
    if twin_of(bundle.path).exists():
        files[".ptx"] = bundle.ptx(record.ptx_digest).text.encode()
    return files


def file_stem(variant_id: str) -> str:
    """A name for an entry's files: letters, digits, `_ . = -`; different for different ids."""
    readable = re.sub(r"[^\w.=-]+", "_", variant_id, flags=re.ASCII).strip("._")
    return f"{readable[:STEM_BYTES]}-{sha256(variant_id.encode()).hexdigest()[:8]}"


def _put(path: Path, data: bytes) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        raise BundleError(what, where=str(path), hint="give a writable folder") from error
    return path
