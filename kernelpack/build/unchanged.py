"""The short way of a build whose inputs are all what they were: nothing is expanded or rendered.

Variants and their sources follow from manifests, templates, options and kernelpack's own code. The
cache keeps, under a digest of all these, which variants there were and which files came of them.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from kernelpack.build.finish import Files, finished
from kernelpack.build.options import Options
from kernelpack.cache.key import code_digest
from kernelpack.cache.store import ContentError, Store
from kernelpack.render.templates import Templates
from kernelpack.spec.artifact import digest
from kernelpack.toolchain.toolchain import Toolchain


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The earlier outcome of the same inputs: the variants' ids, and the finished files."""

    variants: tuple[str, ...]
    files: Files


def inputs_key(options: Options, toolchain: Toolchain, linter: str) -> str:
    """A digest over everything that a bundle follows from; reads every manifest and template.

    `linter` names who checks the machine code: an unchecked bundle is another one.
    """
    return digest(
        json.dumps(
            [
                [code_digest(), version("jinja2")],
                [str(toolchain), toolchain.digest, toolchain.ptxas_digest],
                [dict(toolchain.versions), linter],
                [str(target) for target in options.targets] if options.targets else None,
                [options.keep, str(options.shard)],
                [_files(path.parent, [path]) for path in options.manifests],
                _files(options.templates, sorted(_below(options.templates))),
                *(_files(folder.parent, [path]) for folder, path in _own(options)),
            ]
        )
    )


def recall(store: Store, inputs: str) -> Known | None:
    """The outcome of these inputs; None if it is unknown or no longer all in the cache."""
    held = store.known(inputs, _decode)
    if held is None:
        return None
    variants, files_key = held
    files = finished(store, files_key, variants)
    return Known(variants=tuple(variants), files=files) if files else None


def _decode(record: bytes) -> tuple[list[str], str]:
    """What `remember` kept.

    Raises:
        ContentError: something else.

    """
    try:
        match json.loads(record):
            case [list() as variants, str() as files_key]:
                return [str(variant) for variant in variants], files_key
    except ValueError as error:
        raise ContentError("the cache holds something else than a build") from error
    raise ContentError("the cache holds something else than a build")


def remember(store: Store, inputs: str, variants: Sequence[str], files_key: str) -> None:
    """Keep what these inputs gave."""
    store.put(inputs, json.dumps([list(variants), files_key]).encode())


def _own(options: Options) -> Iterator[tuple[Path, Path]]:
    """The templates and headers in folders of kernels, each with its folder."""
    for folder in options.kernels:
        there = Templates(options.templates, (folder,))
        yield from ((folder, path) for path in (*there.own(), *there.headers()))


def _below(folder: Path) -> Iterator[Path]:
    """Every file of a tree, behind linked folders too; a folder that holds itself is left once."""
    pending, seen = [folder], set()
    while pending:
        here = pending.pop()
        if not here.is_dir() or here.resolve() in seen:
            continue
        seen.add(here.resolve())
        for path in here.iterdir():
            if path.is_dir():
                pending.append(path)
            else:
                yield path


def _files(root: Path, paths: Iterable[Path]) -> list[list[str]]:
    """Name and digest of each; whoever needs a missing one reports it."""
    files = [path for path in paths if path.is_file()]
    return [[path.relative_to(root).as_posix(), digest(path.read_bytes())] for path in files]
