"""Write bundles: the same entries give the same bytes, in whatever order they come.

A bundle is published whole or not at all (`files`).
"""

from collections.abc import Sequence
from pathlib import Path

from kernelpack.bundle import frames
from kernelpack.bundle.container import Contents, pack
from kernelpack.bundle.entry import Entry, Provenance
from kernelpack.bundle.index import Index, index_cubins, index_ptx
from kernelpack.bundle.reader import open_bundle
from kernelpack.bundle.tree import build
from kernelpack.errors import BundleError
from kernelpack.files import publish
from kernelpack.spec.artifact import Ptx


def write(entries: Sequence[Entry], path: Path, provenance: Provenance) -> str:
    """Write the bundle of compiled variants.

    A file that already holds exactly this is left as it is.

    Returns:
        The root of the index, lower-case hex: equal for equal entries and provenance.

    Raises:
        BundleError: two entries of one id, or an entry that contradicts itself.
        KernelpackError: the file cannot be written.

    """
    return _write(index_cubins(entries, provenance), path, frames.LEVEL)


def write_ptx(texts: Sequence[Ptx], path: Path, provenance: Provenance) -> str:
    """Write the twin `X.ptx.kpk` of a bundle `X.kpk`: the PTX that its entries name, each once.

    Returns:
        The root of the index, lower-case hex.

    Raises:
        KernelpackError: the file cannot be written.

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
