"""Several bundles as one: the shards of a build, or bundles of different kernels.

The result has the bytes of one build of everything, whatever the order of the inputs. So they must
have been made with one toolchain, one kernelpack and one state of each source; no id may come
twice, and of a build in shards every shard must be there. A signature covers one root: the result
is unsigned.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from kernelpack.bundle.entry import Provenance, Record
from kernelpack.bundle.provenance import TOOLCHAIN, from_pairs, source_of, to_pairs
from kernelpack.bundle.reader import Bundle, open_entries, twin_of
from kernelpack.bundle.shard import Shard, parse_shard
from kernelpack.bundle.writer import encode, encode_ptx
from kernelpack.errors import BundleError
from kernelpack.files import publish_all


def merge(inputs: Sequence[Path], output: Path) -> int:
    """Write the bundle of all entries of some bundles, and its PTX twin.

    An input may be the output: everything is read before anything is written.

    Returns:
        The number of entries.

    Raises:
        BundleError: a bundle or its twin is missing or damaged, a file or an id comes twice, a
            shard is missing, or they were not made with the same.
        KernelpackError: the output cannot be written.

    """
    check_inputs(inputs)
    bundles = [open_entries(path) for path in inputs]
    provenance = _provenance(bundles)
    _check_shards(bundles)
    held = _held(bundles)
    entries = [bundle.entry(record.id) for bundle, record in held]
    texts = [bundle.ptx(record.ptx_digest) for bundle, record in held]
    files = [
        (twin_of(output), encode_ptx(texts, provenance)),
        (output, encode(entries, provenance)),
    ]
    publish_all(files)
    return len(entries)


def check_inputs(inputs: Sequence[Path]) -> None:
    """Refuse a file that is given twice, before missing ones are named.

    Raises:
        BundleError: names it.

    """
    seen: set[Path] = set()
    for path in inputs:
        if (found := path.resolve()) in seen:
            raise BundleError("is given twice", where=str(path), hint="give each bundle once")
        seen.add(found)


def _held(bundles: Iterable[Bundle]) -> list[tuple[Bundle, Record]]:
    """Every entry and where it is; refuses an id that comes twice."""
    held: dict[str, tuple[Bundle, Record]] = {}
    for bundle in bundles:
        for record in bundle.records():
            if record.id in held:
                raise _twice(bundle, record, *held[record.id])
            held[record.id] = bundle, record
    return list(held.values())


def _twice(bundle: Bundle, record: Record, first: Bundle, known: Record) -> BundleError:
    alike = "the same" if record.image_digest == known.image_digest else "other"
    return BundleError(
        f"`{record.id}` is in {first.path} too, with {alike} machine code",
        where=str(bundle.path),
        hint="give bundles that have no entry in common",
    )


def _provenance(bundles: Iterable[Bundle]) -> Provenance:
    """The provenance of all; refuses two that differ in one part or source."""
    pairs: dict[str, str] = {}
    where: dict[str, Path] = {}
    for bundle in bundles:
        for key, value in to_pairs(replace(bundle.provenance, shard="")).items():
            first = where.setdefault(key, bundle.path)
            if pairs.setdefault(key, value) != value:
                raise _differ(key, value, bundle, pairs[key], first)
    return from_pairs(pairs)


def _differ(key: str, value: str, bundle: Bundle, other: str, first: Path) -> BundleError:
    """Nobody reads anything from the digests of a source or a toolchain."""
    hint = "build both with one toolchain and one kernelpack, from the same sources"
    what = f"`{key}` is {value}, and {other} in {first}"
    if source := source_of(key):
        what = f"`{source}` is another than that of {first}"
        hint = "build both from the same sources; two kernels of one name cannot be in one bundle"
    elif key == TOOLCHAIN:
        what = f"its compilers and headers are others than those of {first}"
    return BundleError(what, where=str(bundle.path), hint=hint)


def _check_shards(bundles: Iterable[Bundle]) -> None:
    """Refuse a build in shards with a duplicate or missing one."""
    found = {bundle.path: _shard(bundle) for bundle in bundles if bundle.provenance.shard}
    given: dict[Shard, Path] = {}
    for path, shard in found.items():
        if (first := given.setdefault(shard, path)) != path:
            what = f"this is shard {shard}, and so is {first}"
            raise BundleError(what, where=str(path), hint="give every shard once")
    for path, shard in found.items():
        for number in range(1, shard.count + 1):
            if replace(shard, number=number) not in given:
                raise BundleError(
                    f"this is shard {shard}, and shard {number} of the same build is missing",
                    where=str(path),
                    hint="give every shard, built with the same manifests, targets and -k",
                )


def _shard(bundle: Bundle) -> Shard:
    text = bundle.provenance.shard
    shard = parse_shard(text)
    if shard is None:
        raise BundleError(f"says that it is shard `{text}`", where=str(bundle.path))
    return shard
