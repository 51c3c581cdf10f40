"""The CPU time of a launch: the op, a prepared launch, and raw C++ beside them.

    python benchmarks/launch.py --bundle X.kpk

LoRA shrink of one empty group, so the GPU has nothing to do; batches short enough to be queued
whole, timed without the wait for the GPU. Prints JSON. The C++ is compiled with g++ at each run,
or given compiled: `--yardstick LIBRARY`. The extension (`extension/`) is timed where it is
installed.
"""

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter_ns

import numpy as np

from kernelpack import ops
from kernelpack.formats.dtype import DType
from kernelpack.load.library import Launch, Library, Memory
from kernelpack.load.load import load
from kernelpack.ops.arrays import DeviceArray
from kernelpack.ops.prepared import Prepared
from kernelpack.runtime.bound import Bind, bind_by_ctypes, fastest_bind
from kernelpack.runtime.streams import new_stream, synchronize

BATCH = 200  # launches in the queue, which holds 1024
ROUNDS = 50
M, N, K, G = 16, 16, 4096, 4


def main() -> None:
    options = parse()
    library = load(options.bundle)
    arrays, memories = make_arrays(library, options.device)
    with new_stream(library.driver, options.device) as stream:
        times = measure(library, arrays, stream, options)
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
        "over_raw_cpp": {
            name: round(spent / times["raw_cpp"], 3)
            for name, spent in times.items()
            if name.startswith("prepared_by")
        },
    }
    print(json.dumps(facts, indent=2))
    del memories


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--yardstick", type=Path, help="launch.cpp, compiled; else g++ does")
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
    library: Library, arrays: list[DeviceArray], stream: int, options: argparse.Namespace
) -> dict[str, float]:
    """Microseconds of one launch by each way, the median of rounds that take turns."""
    *inputs, out = arrays

    def prepare(bind: Bind) -> Prepared:
        library._entries.bind = bind
        made = ops.lora_shrink_qkv.prepare(*inputs, out=out, library=library)
        made(stream)
        return made

    plain, prepared = prepare(bind_by_ctypes), prepare(fastest_bind())
    has_extension = fastest_bind() is not bind_by_ctypes
    launch = launch_of(prepared)
    with yardstick(options.yardstick) as path:
        raw = raw_launcher(path, library._entries.launch, launch, stream)
    other = library.memory(M * K * 2, options.device)
    addresses = [other.address, inputs[0].pointer]

    def rebound() -> None:
        addresses.reverse()
        prepared.rebind(a=addresses[0])
        prepared(stream)

    ways: dict[str, Callable[[], float]] = {
        "raw_cpp": lambda: raw(BATCH),
        "prepared_by_ctypes": lambda: batch(lambda: plain(stream)),
        "rebound_and_prepared": lambda: batch(rebound),
        "op": lambda: batch(
            lambda: ops.lora_shrink_qkv(*inputs, out=out, stream=stream, library=library)
        ),
    }
    if has_extension:
        ways["prepared_by_extension"] = lambda: batch(lambda: prepared(stream))
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            synchronize(library.driver, stream, options.device)
            times[name].append(way() / 1000)
    synchronize(library.driver, stream, options.device)
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


@contextmanager
def yardstick(given: Path | None) -> Iterator[Path]:
    """launch.cpp as a library."""
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "launch.so"
        source = Path(__file__).with_name("launch.cpp")
        flags = ["-O2", "-std=c++17", "-shared", "-fPIC"]
        subprocess.run(["g++", *flags, str(source), "-o", str(library)], check=True)
        yield library


def raw_launcher(path: Path, entry: int, launch: Launch, stream: int) -> Callable[[int], float]:
    """C++ that launches the same packed parameters; nanoseconds of one launch."""
    many = ctypes.CDLL(str(path)).launch_many
    many.restype = ctypes.c_double
    many.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int]
    config, pointers = ctypes.addressof(launch._config), ctypes.addressof(launch._pointers)

    def run(count: int) -> float:
        spent: float = many(entry, config, launch.function.handle, pointers, stream, count)
        assert spent > 0, f"cuLaunchKernelEx answered {-spent}"
        return spent

    return run


if __name__ == "__main__":
    main()
