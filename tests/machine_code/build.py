"""Real bundles of real kernels, built in folders of a test, and their machine code as text."""

import json
from pathlib import Path
from typing import Any

from filelock import FileLock

from kernelpack.build.options import Options
from kernelpack.build.pipeline import build
from kernelpack.bundle.reader import Bundle
from kernelpack.machine_code.disassembler import find
from kernelpack.machine_code.instruction import Kernel, read
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.spec.variant import Variant
from kernelpack.toolchain.elf import code_of

ROOT = Path(__file__).parents[2]
MANIFESTS = tuple(sorted((ROOT / "manifests").glob("*.yaml")))


def variants(arch: str = "") -> list[Variant]:
    """What all manifests expand to, for one target or for all."""
    expanded = [v for path in MANIFESTS for v in expand(load(path))]
    return [v for v in expanded if v.arch.name.startswith(arch)]


def build_in(folder: Path, **changes: Any) -> Path:
    """Build a bundle, with its cache, in a folder; returns its path once nothing failed."""
    asked: dict[str, Any] = {
        "manifests": MANIFESTS,
        "templates": ROOT / "templates",
        "output": folder / "x.kpk",
        "cache_dir": folder / "cache",
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
    listed = bundle.path.with_suffix(".opcodes.json")
    with FileLock(bundle.path.with_suffix(".lock")):
        if not listed.exists():
            listed.write_text(json.dumps(_opcodes(bundle)))
    return {variant_id: set(names) for variant_id, names in json.loads(listed.read_text()).items()}


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
