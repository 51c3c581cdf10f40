"""The last step: entries → a bundle and its PTX twin, made once for each set of inputs.

Finished files are kept in the cache under everything that they depend on. A build whose inputs
are all known reads two files and touches its output only where the bytes differ.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kernelpack import __version__
from kernelpack.build.steps import Steps
from kernelpack.bundle.entry import Entry, Provenance
from kernelpack.bundle.reader import open_bundle, twin_of
from kernelpack.cache.key import Key, code_digest
from kernelpack.cache.store import ContentError, Store
from kernelpack.errors import BundleError, CacheError
from kernelpack.files import publish_all
from kernelpack.spec.artifact import Ptx, Source, digest
from kernelpack.toolchain.scratch import scratch
from kernelpack.toolchain.toolchain import Toolchain


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The bytes of a bundle and of its PTX twin."""

    bundle: bytes
    ptx: bytes


def files_key(keys: Mapping[str, Key], provenance: Provenance, linter: str) -> str:
    """The inputs of the two files: each variant's key by id, the sources, kernelpack itself.

    A variant's launch, parameters and guards follow from its manifest and from our code. `linter`
    is who looked at the machine code.
    """
    variants = {variant_id: key.digest for variant_id, key in keys.items()}
    made_with = [dict(provenance.versions), dict(provenance.sources), provenance.shard]
    return digest(json.dumps([code_digest(), made_with, variants, linter]))


def finished(store: Store, key: str, ids: Sequence[str]) -> Files | None:
    """The files, if they were made before, and are bundles: of the cubins of these variants."""
    bundle = store.known(_bundle(key), partial(_sound, ids=sorted(ids)))
    ptx = store.known(_ptx(key), _sound)
    return None if bundle is None or ptx is None else Files(bundle=bundle, ptx=ptx)


def _sound(data: bytes, ids: Sequence[str] | None = None) -> bytes:
    """The bytes of a bundle, of these variants or of PTX; they are to replace a user's."""
    with scratch() as folder:
        path = folder / "held.kpk"
        path.write_bytes(data)
        try:
            bundle = open_bundle(path)
            known = None if ids is None else sorted(variant.id for variant in bundle.variants())
        except BundleError as error:
            raise ContentError("the cache holds something else than a bundle") from error
    if known != ids:
        raise ContentError("the cache holds a bundle of other variants")
    return data


def finish(
    store: Store,
    key: str,
    made: Sequence[tuple[Entry, Ptx]],
    provenance: Provenance,
    steps: Steps,
) -> Files:
    """Make the files, and keep them where the cache can be written."""
    with scratch() as folder:
        bundle, ptx = folder / "bundle", folder / "ptx"
        steps.write([entry for entry, _ in made], bundle, provenance)
        steps.write_ptx([text for _, text in made], ptx, provenance)
        files = Files(bundle=bundle.read_bytes(), ptx=ptx.read_bytes())
    with suppress(CacheError):  # one that only serves costs the next build this step
        store.put(_bundle(key), files.bundle)
        store.put(_ptx(key), files.ptx)
    return files


def place(files: Files, output: Path) -> bool:
    """Put both files where they were asked for; whether either one changed.

    Raises:
        BundleError: the folder cannot be made.
        KernelpackError: a file cannot be written.

    """
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"the folder cannot be made: {error.strerror}"
        raise BundleError(
            what, where=str(output), hint="give a path in a writable folder"
        ) from error
    wanted = {twin_of(output).resolve(): files.ptx, output.resolve(): files.bundle}  # links stay
    changed = {path: data for path, data in wanted.items() if _differs(path, data)}
    publish_all(changed.items())
    return bool(changed)


def provenance_of(
    toolchain: Toolchain, manifests: Sequence[Path], sources: Sequence[Source]
) -> Provenance:
    """The inputs of a bundle: compilers, manifests, and the parts of each source."""
    files = {
        **{f"manifests/{path.name}": path.read_bytes() for path in manifests},
        **{f"templates/{part.path}": part.text.encode() for s in sources for part in s.parts},
        **{f"templates/include/{h.path}": h.text.encode() for s in sources for h in s.headers},
    }
    return Provenance(
        kernelpack=__version__,
        toolchain=toolchain.name,
        front_end=toolchain.front_end,
        release=toolchain.release,
        toolchain_digest=toolchain_digest(toolchain),
        versions=dict(toolchain.versions),
        sources={path: digest(data) for path, data in files.items()},
        licences={path: match[1].decode() for path, match in _stated(files)},
    )


def toolchain_digest(toolchain: Toolchain) -> str:
    """The identity of a toolchain: its compilers and headers, by their bytes."""
    return digest(f"{toolchain.digest} {toolchain.ptxas_digest}")


_LICENCE = re.compile(rb"SPDX-License-Identifier: ([\w.+() -]*[\w.+)])")


def _stated(files: Mapping[str, bytes]) -> Iterator[tuple[str, re.Match[bytes]]]:
    """The files that state their licence, as `SPDX-License-Identifier: Apache-2.0` in a comment."""
    for path, data in files.items():
        if match := _LICENCE.search(data):
            yield path, match


def _bundle(key: str) -> str:
    return digest(f"{key} bundle")


def _ptx(key: str) -> str:
    return digest(f"{key} ptx")


def _differs(path: Path, data: bytes) -> bool:
    return not path.is_file() or path.read_bytes() != data
