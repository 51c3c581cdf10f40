"""How fast the emulator is: CPU time of a run by both engines, and the start-up of a kernel.

    kernelpack build -o X.kpk --target sm_100a
    python benchmarks/emulator.py X.kpk [--out results/emulator.json]

Kernels for sm_100a: LoRA shrink on a ragged prefill, bound by its epilogue and barriers, on a long
K, bound by its MMAs, and in decode, bound by scalar code; an NVFP4 GEMM; one token of sparse MLA.
Each runs with every check under the lazy schedule, as `kernelpack verify` runs it, by the compiled
engine and by the Python one. Times are CPU time, so that a busy machine shows the same; the best of
a few. `run` is from a launch to its end; `call` has placing arrays and reading results too. Prints
JSON.
"""

import argparse
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import Any

from kernelpack.bundle.reader import Bundle, open_bundle
from kernelpack.emulator import call as calling
from kernelpack.emulator.call import Call, call
from kernelpack.emulator.ptx.parser import Program, parse
from kernelpack.emulator.run import Result, run
from kernelpack.kernels.registry import KERNELS
from kernelpack.spec.variant import Variant

LORA = "lora_shrink_qkv[arch=sm_100a,dtype=bf16,out=bf16"
PREFILL = f"{LORA},regime=prefill,tile_tokens=128,tile_flat=96"
DECODE = f"{LORA},regime=decode,tile_tokens=8,tile_flat=128"
TYPES = {"dtype": "bf16", "out_dtype": "bf16"}
WORKLOADS: dict[str, tuple[str, dict[str, str]]] = {
    "prefill": (PREFILL, {"m": "300", "n": "32", "k": "512", "g": "4", **TYPES}),
    "long_k": (PREFILL, {"m": "256", "n": "32", "k": "16384", "g": "1", **TYPES}),
    "decode": (DECODE, {"m": "16", "n": "64", "k": "1024", "g": "4", **TYPES}),
    "nvfp4": (
        "nvfp4_grouped_gemm[arch=sm_100a,out=bf16,rows=weights,tile_tokens=32,",
        {"t": "32", "n": "72", "k": "1824", "e": "4", "n_active": "3", "out_dtype": "bf16"},
    ),
    "sparse_mla": (
        "sparse_mla_prefill[arch=sm_100a,row=bf16_576,scale_block=0,heads=128,query=bf16",
        {"t": "1", "h": "128", "topk": "2048", "row": "bf16_576", "page": "64", "blocks": "64"},
    ),
}
MULTIPROCESSORS = 4
REPEATS = {"compiled": 7, "python": 2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", nargs="*", default=list(WORKLOADS))
    options = parser.parse_args()
    bundle = open_bundle(options.bundle)
    facts = report({name: measure(bundle, name) for name in options.only})
    text = json.dumps(facts, indent=2) + "\n"
    print(text, end="")
    if options.out:
        options.out.write_text(text)


def measure(bundle: Bundle, name: str) -> dict[str, object]:
    """One workload: what its kernel's first run costs more, and a run by each engine."""
    wanted, sizes = WORKLOADS[name]
    variant = next(v for v in bundle.variants(wanted.partition("[")[0]) if wanted in v.id)
    text = bundle.ptx(bundle.find(variant.id).ptx_digest).text
    return {
        "variant": variant.id,
        "sizes": sizes,
        "start_up_cpu_s": round(start_up(text, variant, sizes), 3),
        **{how: best(parse(text), variant, sizes, how) for how in REPEATS},
    }


def start_up(text: str, variant: Variant, sizes: dict[str, str]) -> float:
    """CPU seconds to parse a kernel, and to translate what one run needs of it."""
    parse.cache_clear()
    begin = process_time()
    program = parse(text)
    parsed = process_time() - begin
    first = timed(program, variant, sizes, "compiled")["call"]
    return parsed + first - timed(program, variant, sizes, "compiled")["call"]


def best(program: Program, variant: Variant, sizes: dict[str, str], how: str) -> dict[str, float]:
    """The best run of a few."""
    runs = [timed(program, variant, sizes, how) for _ in range(REPEATS[how])]
    found = min(runs, key=lambda each: each["run"])
    return {
        "warp_instructions": found["steps"],
        "run_cpu_ms": round(1e3 * found["run"], 2),
        "call_cpu_ms": round(1e3 * found["call"], 2),
    }


def timed(program: Program, variant: Variant, sizes: dict[str, str], how: str) -> dict[str, float]:
    """CPU seconds and warp instructions of one run, which must be right."""
    definition = KERNELS[variant.kernel]
    case = definition.case(dict(sizes))
    arrays = definition.inputs(case)
    known = {**case.sizes, "sm_count": MULTIPROCESSORS}
    seconds: list[float] = []

    def clocked(*given: Any, **named: Any) -> Result:
        begin = process_time()
        result = run(*given, **named, compiled=how == "compiled")
        seconds.append(process_time() - begin)
        return result

    calling.run = clocked
    begin = process_time()
    done: Call = call(program, variant, known, arrays, schedule="lazy")
    whole = process_time() - begin
    assert done.result.clean, done.result
    return {"call": whole, "run": seconds[-1], "steps": done.result.steps}


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
