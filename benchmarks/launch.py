"""What a launch costs the CPU: the op, a prepared launch, and raw C++ beside them.

    python benchmarks/launch.py --bundle X.kpk

LoRA shrink of one empty group, so the GPU has nothing to do; batches short enough to be queued
whole, timed without the wait for the GPU. Prints JSON. The C++ is compiled with g++ at each run.
"""

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Any, cast

import numpy as np

from kernelpack import ops
from kernelpack.formats.dtype import DType
from kernelpack.load.library import Library, Memory
from kernelpack.load.load import load
from kernelpack.ops.arrays import DeviceArray
from kernelpack.ops.prepared import Prepared
from kernelpack.runtime.launch import Launch
from kernelpack.runtime.streams import new_stream, synchronize

BATCH = 200  # launches in the queue, which holds 1024
ROUNDS = 50
M, N, K, G = 16, 16, 4096, 4


def main() -> None:
    options = parse()
    library = load(options.bundle)
    arrays, memories = make_arrays(library, options.device)
    with new_stream(library.driver, options.device) as stream:
        times = measure(library, arrays, stream, options.device)
    facts = {
        "benchmark": "launch",
        "command": " ".join(["python", *sys.argv]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": str(library.device(options.device)),
        "driver": str(library.driver),
        "python": sys.version.split()[0],
        "batch": BATCH,
        "rounds": ROUNDS,
        "microseconds": times,
        "prepared_over_raw": round(times["prepared"] / times["raw_cpp"], 3),
    }
    print(json.dumps(facts, indent=2))
    del memories


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--device", type=int, default=0)
    return parser.parse_args()


def make_arrays(library: Library, device: int) -> tuple[list[DeviceArray], list[Memory]]:
    """The four inputs and the output, on the device; one group without tokens."""
    shapes = {
        "a": ((M, K), DType.BF16),
        "b": ((G, 3 * N, K), DType.BF16),
        "a_offsets": ((2,), DType.U32),
        "expert_ids": ((1,), DType.I32),
        "c": ((3, M, N), DType.BF16),
    }
    arrays, memories = [], []
    for shape, dtype in shapes.values():
        zeros = np.zeros(shape, dtype.numpy)
        memory = library.memory(zeros.nbytes, device)
        memory.write(zeros)
        memories.append(memory)
        arrays.append(DeviceArray(pointer=memory.address, shape=shape, dtype=dtype, device=device))
    return arrays, memories


def measure(
    library: Library, arrays: list[DeviceArray], stream: int, device: int
) -> dict[str, float]:
    """Microseconds of one launch by each way, the median of rounds that take turns."""
    *inputs, out = arrays
    prepared = ops.lora_shrink_qkv.prepare(*inputs, out=out, library=library)
    prepared(stream)
    launch = launch_of(prepared)
    raw = raw_launcher(launch, stream)
    other = library.memory(M * K * 2, device)
    addresses = [other.address, inputs[0].pointer]

    def rebound() -> None:
        addresses.reverse()
        prepared.rebind(a=addresses[0])
        prepared(stream)

    ways: dict[str, Callable[[], float]] = {
        "raw_cpp": lambda: raw(BATCH),
        "launch": lambda: batch(lambda: launch(stream)),
        "prepared": lambda: batch(lambda: prepared(stream)),
        "prepared_rebound": lambda: batch(rebound),
        "op": lambda: batch(
            lambda: ops.lora_shrink_qkv(*inputs, out=out, stream=stream, library=library)
        ),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            synchronize(library.driver, stream, device)
            times[name].append(way() / 1000)
    synchronize(library.driver, stream, device)
    return {name: round(median(values), 3) for name, values in times.items()}


def batch(way: Callable[[], object]) -> float:
    """Nanoseconds of one call, the mean of a batch."""
    start = perf_counter_ns()
    for _ in range(BATCH):
        way()
    return (perf_counter_ns() - start) / BATCH


def launch_of(prepared: Prepared) -> Launch:
    launch = prepared._launch
    assert launch is not None, "the problem has tokens"
    return launch


def raw_launcher(launch: Launch, stream: int) -> Callable[[int], float]:
    """C++ that launches the same packed parameters; nanoseconds of one launch."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "launch.so"
        source = Path(__file__).with_name("launch.cpp")
        flags = ["-O2", "-std=c++17", "-shared", "-fPIC"]
        subprocess.run(["g++", *flags, str(source), "-o", str(library)], check=True)
        many = ctypes.CDLL(str(library)).launch_many
    many.restype = ctypes.c_double
    many.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int]
    start = ctypes.cast(cast("Any", launch._start), ctypes.c_void_p)
    config, pointers = launch._config_address, launch._pointers_address

    def run(count: int) -> float:
        spent: float = many(start, config, launch.function.handle, pointers, stream, count)
        assert spent > 0, f"cuLaunchKernelEx answered {-spent}"
        return spent

    return run


if __name__ == "__main__":
    main()
