"""How fast the emulator is: warp instructions a second, and the start-up of a kernel.

    kernelpack build manifests/lora_shrink_qkv.yaml -o X.kpk
    python benchmarks/emulator.py X.kpk [--out results/emulator.json]

Three LoRA shrink kernels for sm_100a: a prefill variant on a ragged problem, bound by its epilogue
and barriers; the same on a long K, bound by its MMAs; a decode variant, bound by scalar code. Each
runs with every check, as `kernelpack verify` runs it. Times are CPU time, so that a busy machine
tells the same; the best of a few. Prints JSON.
"""

import argparse
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from time import process_time

from kernelpack.bundle.reader import Bundle, open_bundle
from kernelpack.emulator.call import Call, call
from kernelpack.emulator.ptx.parser import Program, parse
from kernelpack.kernels.registry import KERNELS
from kernelpack.spec.variant import Variant

KERNEL = "lora_shrink_qkv"
PREFILL = "arch=sm_100a,dtype=bf16,out=bf16,regime=prefill,tile_tokens=128,tile_flat=96"
DECODE = "arch=sm_100a,dtype=bf16,out=bf16,regime=decode,tile_tokens=8,tile_flat=128"
RAGGED = {"m": "300", "n": "32", "k": "512", "g": "4"}
LONG = {"m": "256", "n": "32", "k": "16384", "g": "1"}
FEW = {"m": "16", "n": "64", "k": "1024", "g": "4"}
WORKLOADS = {
    "prefill": (PREFILL, RAGGED),
    "long_k": (PREFILL, LONG),
    "decode": (DECODE, FEW),
}
MULTIPROCESSORS = 4
REPEATS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    bundle = open_bundle(options.bundle)
    facts = report({name: measure(bundle, name) for name in WORKLOADS})
    text = json.dumps(facts, indent=2) + "\n"
    print(text, end="")
    if options.out:
        options.out.write_text(text)


def measure(bundle: Bundle, name: str) -> dict[str, object]:
    """One workload: what its kernel's first run costs more, and its rate under two schedules."""
    wanted, sizes = WORKLOADS[name]
    variant = next(v for v in bundle.variants(KERNEL) if wanted in v.id)
    text = bundle.ptx(bundle.find(variant.id).ptx_digest).text
    return {
        "variant": variant.id,
        "sizes": sizes,
        "start_up_cpu_s": round(start_up(text, variant, sizes), 3),
        **{how: rate(parse(text), variant, sizes, how) for how in ("eager", "lazy")},
    }


def start_up(text: str, variant: Variant, sizes: dict[str, str]) -> float:
    """CPU seconds to parse a kernel and to translate what one run needs of it."""
    parse.cache_clear()
    begin = process_time()
    program = parse(text)
    parsed = process_time() - begin
    first, _ = run(program, variant, sizes, "eager")
    return parsed + first - min(run(program, variant, sizes, "eager")[0] for _ in range(REPEATS))


def rate(
    program: Program, variant: Variant, sizes: dict[str, str], schedule: str
) -> dict[str, float]:
    """Warp instructions a CPU second, of the best run."""
    seconds, steps = min(run(program, variant, sizes, schedule) for _ in range(REPEATS))
    return {
        "warp_instructions": steps,
        "cpu_s": round(seconds, 3),
        "per_s": round(steps / seconds),
    }


def run(
    program: Program, variant: Variant, sizes: dict[str, str], schedule: str
) -> tuple[float, int]:
    """CPU seconds and warp instructions of one run, which must be right."""
    definition = KERNELS[KERNEL]
    case = definition.case({**sizes, "dtype": "bf16", "out_dtype": "bf16"})
    arrays = definition.inputs(case)
    known = {**case.sizes, "sm_count": MULTIPROCESSORS}
    begin = process_time()
    done: Call = call(program, variant, known, arrays, schedule=schedule)
    seconds = process_time() - begin
    assert done.result.clean, done.result
    return seconds, done.result.steps


def report(workloads: dict[str, object]) -> dict[str, object]:
    """The workloads, and where and when they ran."""
    return {
        "benchmark": "emulator",
        "command": " ".join(["python", *sys.argv]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": f"{cpu()}, {len(os.sched_getaffinity(0))} cores",
        "python": sys.version.split()[0],
        "workloads": workloads,
    }


def cpu() -> str:
    """The processor's name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else os.uname().machine


if __name__ == "__main__":
    main()
