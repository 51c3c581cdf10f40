"""How long `kernelpack build` takes: clean, with nothing changed, and after one template edit.

    python benchmarks/build_time.py [--manifest manifests/X.yaml] [--out results/build_time.json]

The checkout is copied first, so that its cache is empty and its template can be edited. Every time
is wall time of a whole command, Python's start included. Prints JSON.
"""

import argparse
import json
import os
import shutil
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from kernelpack.process import ENVIRONMENT, run

CHECKOUT = Path(__file__).resolve().parent.parent
COPIED = ("kernelpack", "templates", "manifests", "build_kernels.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--manifest", default="manifests/lora_shrink_qkv.yaml")
    parser.add_argument("--template", default="templates/lora_shrink_qkv/sm_90.cu.j2")
    parser.add_argument("--repeats", type=int, default=5, help="builds with nothing changed")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with TemporaryDirectory() as name:
        facts = report(measure(copy(Path(name)), options), load)
    text = json.dumps(facts, indent=2) + "\n"
    print(text, end="")
    if options.out:
        options.out.write_text(text)


def copy(folder: Path) -> Path:
    """A copy of what a build needs of the checkout."""
    for part in COPIED:
        source = CHECKOUT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / part)
    return folder


def measure(checkout: Path, options: argparse.Namespace) -> dict[str, object]:
    """Every build in turn: its seconds, and how its variants fared."""
    build(checkout, options.manifest, "--dry-run")  # compiles Python's own bytecode
    clean = build(checkout, options.manifest)
    no_op = [build(checkout, options.manifest) for _ in range(options.repeats)]
    template = checkout / options.template
    template.write_text(template.read_text() + "\n// edited\n")
    source_only = build(checkout, options.manifest)
    template.write_text(template.read_text() + "__device__ int edited;\n")
    return {
        "clean": clean,
        "no_op": no_op[0] | {"seconds": median(one["seconds"] for one in no_op)},
        "comment_edit": source_only,
        "template_edit": build(checkout, options.manifest),
    }


def build(checkout: Path, manifest: str, *more: str) -> dict[str, float | int]:
    """One build: wall seconds, and counts of variants by state."""
    command = [sys.executable, "build_kernels.py", manifest, "-o", "X.kpk", "--json", *more]
    cache = {"KERNELPACK_CACHE_DIR": str(checkout / "cache")}
    start = perf_counter()
    done = run(command, cwd=checkout, env=ENVIRONMENT | cache)
    seconds = perf_counter() - start
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    states = Counter(variant["state"] for variant in json.loads(done.stdout)["variants"])
    return {"seconds": round(seconds, 3), **states}


def report(builds: dict[str, object], load: float) -> dict[str, object]:
    """The builds, and where and when they ran."""
    return {
        "benchmark": "build_time",
        "command": " ".join(["python", *sys.argv]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": f"{cpu()}, {len(os.sched_getaffinity(0))} cores",
        "load_before": round(load, 2),
        "python": sys.version.split()[0],
        "builds": builds,
    }


def cpu() -> str:
    """The processor's name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else os.uname().machine


if __name__ == "__main__":
    main()
