"""Real bundles of real kernels, and their machine code as text.

What is compiled is kept between runs, see tests/kept.py.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from kernelpack.build.key import code_digest
from kernelpack.build.options import Options
from kernelpack.build.pipeline import build
from kernelpack.bundle.reader import Bundle
from kernelpack.machine_code.disassembler import find
from kernelpack.machine_code.instruction import Kernel, read
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import digest
from kernelpack.spec.variant import Variant
from kernelpack.toolchain.elf import code_of
from tests.kept import FOLDER, ROOT, STORE

MANIFESTS = tuple(sorted((ROOT / "manifests").glob("*.yaml")))
TARGETS = (Arch("sm_100a"), Arch("sm_90a"))
"""What tests build. test_family has a sample of sm_103a, whose PTX is sm_100a's."""


def variants(arch: str = "") -> list[Variant]:
    """What all manifests expand to, for one of these targets or for all."""
    return [v for v in _expanded() if v.arch.name.startswith(arch)]


@cache
def _expanded() -> tuple[Variant, ...]:
    """Many modules ask when they are collected."""
    return tuple(v for path in MANIFESTS for v in expand(load(path), TARGETS))


def build_in(folder: Path, **changes: Any) -> Path:
    """Build a bundle in a folder; returns its path once nothing failed."""
    asked: dict[str, Any] = {
        "manifests": MANIFESTS,
        "targets": TARGETS,
        "templates": ROOT / "templates",
        "output": folder / "x.kpk",
        "cache_dir": FOLDER,
    }
    report = build(Options(**asked | changes))
    failures = [str(outcome.error) for outcome in report.failures]
    assert not failures, failures[:3]
    return report.bundle


def build_once(folder: Path) -> Path:
    """The bundle of all manifests; of several processes that ask, one builds it."""
    with FileLock(folder / "kernelpack.lock"):
        return build_in(folder / "kernelpack")


def opcodes_once(bundle: Bundle) -> dict[str, set[str]]:
    """The names of the instructions of every entry, by id; one process disassembles them."""
    reader = code_digest("machine_code", "toolchain/elf.py")
    key = digest(f"{bundle.root} {find()} {reader}")
    listed = STORE.make_once(key, lambda: json.dumps(_opcodes(bundle)).encode())
    return {variant_id: set(names) for variant_id, names in json.loads(listed).items()}


def _opcodes(bundle: Bundle) -> dict[str, list[str]]:
    """All are disassembled together, as in a build: few instructions are different."""
    disassembler = find()
    assert disassembler
    kernels = {
        record.id: Kernel(
            entry=record.symbol,
            target=record.target,
            code=code_of(bundle.image(record.id), record.symbol),
        )
        for record in bundle.records()
    }
    read_all = zip(kernels, read(list(kernels.values()), disassembler), strict=True)
    return {name: sorted({i.text.root for i in code}) for name, code in read_all}
