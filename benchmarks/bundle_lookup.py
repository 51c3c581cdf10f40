"""Open a bundle of 10,000 entries and find one: the C++ loader, and Python beside it.

    python benchmarks/bundle_lookup.py

Header, root and the entry's path through the tree are checked each time; the file is in the page
cache. Prints JSON: microseconds, median and 99th percentile. The C++ is compiled with g++ at each
run, which needs zstd's development files.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from platform import processor
from random import Random
from time import perf_counter_ns

from kernelpack.bundle.entry import Entry, Provenance
from kernelpack.bundle.reader import open_bundle
from kernelpack.bundle.writer import write
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.spec.artifact import Resources, digest
from kernelpack.spec.variant import Variant

ROOT = Path(__file__).parents[1]
INCLUDE = ROOT / "kernelpack" / "include"
ENTRIES, FINDS = 10_000, 2000
Spread = dict[str, float]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.kpk"
        ids = write_many(path)
        asked = Random(0).choices(ids, k=FINDS)
        times = cpp(path, asked, Path(folder)) | python(path, asked)
        facts = {
            "benchmark": "bundle_lookup",
            "command": " ".join(["python", *sys.argv]),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "processor": model(),
            "entries": len(ids),
            "bundle_bytes": path.stat().st_size,
            "finds": FINDS,
            "microseconds": times,
        }
    print(json.dumps(facts, indent=2))


def write_many(path: Path) -> list[str]:
    """A bundle of LoRA shrink's variants with one more axis; machine code is text."""
    variants = expand(load(ROOT / "manifests" / "lora_shrink_qkv.yaml"))
    copies = -(-ENTRIES // len(variants))
    made = [
        replace(variant, axes=(*variant.axes, ("COPY", copy)))
        for copy in range(copies)
        for variant in variants
    ][:ENTRIES]
    provenance = Provenance(
        kernelpack="0",
        toolchain="cuda",
        front_end="nvrtc",
        release="13.0",
        toolchain_digest="0" * 64,
    )
    write([entry(variant) for variant in made], path, provenance)
    return [variant.id for variant in made]


def entry(variant: Variant) -> Entry:
    resources = Resources(
        entry=variant.entry,
        target=str(variant.arch),
        registers=128,
        shared_bytes=0,
        stack_bytes=0,
        spill_bytes=0,
        slots=variant.slots,
    )
    return Entry(
        variant=variant,
        resources=resources,
        image=variant.id.encode(),
        target=str(variant.arch),
        ptx_digest=digest(variant.id),
        source_digest=digest(variant.kernel),
    )


def cpp(path: Path, ids: Sequence[str], folder: Path) -> dict[str, Spread]:
    program, source = folder / "bundle_lookup", Path(__file__).with_suffix(".cpp")
    command = ["g++", "-std=c++17", "-O2", f"-I{INCLUDE}", source, "-o", program, "-lzstd", "-ldl"]
    subprocess.run(command, check=True)
    lines = "".join(f"{wanted}\n" for wanted in ids)
    done = subprocess.run([program, path], input=lines, capture_output=True, text=True, check=True)
    words = [line.split() for line in done.stdout.splitlines()]
    return {f"cpp_{name}": spread(float(median), float(p99)) for name, median, p99 in words}


def python(path: Path, ids: Sequence[str]) -> dict[str, Spread]:
    times = []
    for wanted in ids:
        start = perf_counter_ns()
        open_bundle(path).find(wanted)
        times.append((perf_counter_ns() - start) / 1000)
    times.sort()
    middle, last = times[len(times) // 2], times[len(times) * 99 // 100]
    return {"python_open_and_find": spread(round(middle, 2), round(last, 2))}


def spread(median: float, p99: float) -> Spread:
    return {"median": median, "p99": p99}


def model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return names[0] if names else processor()


if __name__ == "__main__":
    main()
