"""Write bundles: the same entries give the same bytes, in whatever order they come.

A bundle is published whole or not at all: a temporary file beside it, flushed to the medium,
renamed over the old one, which stays valid for those who have it open.
"""

import os
import secrets
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from kernelpack.bundle import frames
from kernelpack.bundle.container import Contents, pack
from kernelpack.bundle.entry import Entry, Provenance
from kernelpack.bundle.index import Index, index_cubins, index_ptx
from kernelpack.bundle.reader import open_bundle
from kernelpack.bundle.tree import build
from kernelpack.errors import BundleError
from kernelpack.spec.artifact import Ptx


def write(entries: Sequence[Entry], path: Path, provenance: Provenance) -> str:
    """Write the bundle of compiled variants.

    A file that already holds exactly this is left as it is.

    Returns:
        The root of the index, lower-case hex: equal for equal entries and provenance.

    Raises:
        BundleError: two entries of one id, an entry that contradicts itself, or the file cannot
            be written.

    """
    return _write(index_cubins(entries, provenance), path, frames.LEVEL)


def write_ptx(texts: Sequence[Ptx], path: Path, provenance: Provenance) -> str:
    """Write the twin `X.ptx.kpk` of a bundle `X.kpk`: the PTX that its entries name, each once.

    Returns:
        The root of the index, lower-case hex.

    Raises:
        BundleError: the file cannot be written.

    """
    return _write(_ptx_index(texts, provenance), path, frames.QUICK)


def encode(entries: Sequence[Entry], provenance: Provenance) -> bytes:
    """The bytes of the bundle that `write` would write."""
    return pack(_contents(index_cubins(entries, provenance), frames.LEVEL))


def encode_ptx(texts: Sequence[Ptx], provenance: Provenance) -> bytes:
    """The bytes of the twin that `write_ptx` would write."""
    return pack(_contents(_ptx_index(texts, provenance), frames.QUICK))


def _ptx_index(texts: Sequence[Ptx], provenance: Provenance) -> Index:
    return index_ptx([ptx.text.encode() for ptx in texts], provenance)


def _write(index: Index, path: Path, level: int) -> str:
    root = build(index.data)[1].hex()
    if not _is_current(path, root):
        publish(path, pack(_contents(index, level)))
    return root


def _is_current(path: Path, root: str) -> bool:
    """Whether the file holds this index and whole frames of this compressor."""
    try:
        bundle = open_bundle(path)
        if bundle.root != root or bundle.compressor != frames.COMPRESSOR:
            return False
        bundle.verify_all()
    except BundleError:
        return False
    return True


def _contents(index: Index, level: int) -> Contents:
    dictionary = frames.train(index.images)
    return Contents(
        index=index.data,
        frames=tuple(frames.compress(index.images, dictionary, level)),
        dictionary=dictionary,
        documents=frames.compress([index.documents], b"", frames.QUICK)[0],
        compressor=frames.COMPRESSOR,
    )


def publish(path: Path, data: bytes) -> None:
    """Put a file at `path`, whole or not at all.

    Raises:
        BundleError: the system refused; says why.

    """
    publish_all([(path, data)])


def publish_all(files: Iterable[tuple[Path, bytes]]) -> tuple[Path, ...]:
    """Put files that belong together; none is replaced before all are on the disk.

    Returns:
        Their paths.

    Raises:
        BundleError: the system refused; says which file, and why.

    """
    staged: dict[Path, Path] = {}
    path = Path()
    try:
        for path, data in files:
            _stage(path, data, staged)
        for path, temporary in staged.items():
            temporary.replace(path)
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        hint = "give a path in a writable folder with room for it"
        raise BundleError(what, where=str(path), hint=hint) from error
    finally:
        for temporary in staged.values():
            temporary.unlink(missing_ok=True)
    return tuple(staged)


def _stage(path: Path, data: bytes, staged: dict[Path, Path]) -> None:
    """Write beside `path`, under its old mode, or that of a new file."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    staged[path] = temporary
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if path.is_file():
        temporary.chmod(stat.S_IMODE(path.stat().st_mode))
