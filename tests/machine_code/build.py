"""Real bundles of real kernels, built in folders of a test, and their machine code as text."""

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from filelock import FileLock

from kernelpack.build.options import Options
from kernelpack.build.pipeline import build
from kernelpack.bundle.reader import Bundle
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.spec.variant import Variant

ROOT = Path(__file__).parents[2]
MANIFESTS = tuple(sorted((ROOT / "manifests").glob("*.yaml")))
INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/ +(?:@!?\w+ +)?([A-Z][A-Z0-9_]*)", re.MULTILINE)
"""`/*0010*/  @!P0 UTMALDG.3D [UR8], ...` → `UTMALDG`."""


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
    ids = [record.id for record in bundle.records()]
    with TemporaryDirectory() as folder, ThreadPoolExecutor() as threads:
        paths = [Path(folder, f"{number}.cubin") for number in range(len(ids))]
        for variant_id, path in zip(ids, paths, strict=True):
            path.write_bytes(bundle.image(variant_id))
        return dict(zip(ids, threads.map(_disassemble, paths), strict=True))


def _disassemble(cubin: Path) -> list[str]:
    command = [_nvdisasm(), "-c", cubin]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return sorted(set(INSTRUCTION.findall(done.stdout)))


@cache
def _nvdisasm() -> Path:
    """The program in its wheel."""
    listed = files("nvidia-cuda-nvdisasm") or ()
    (found,) = (path for path in listed if path.name == "nvdisasm")
    return Path(str(found.locate()))
