"""From a fresh interpreter to the first launch, phase by phase.

    python benchmarks/cold_start.py --bundle X.kpk

Creating the CUDA context is the driver's work and is shown apart: what other programs of the same
GPU pay too. Prints JSON; run it several times, the first one also reads the disk.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

M, N, K, G = 16, 16, 4096, 4
PHASES: dict[str, float] = {}
APART = ("context",)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Note the milliseconds that a block takes."""
    start = perf_counter()
    yield
    PHASES[name] = round(1000 * (perf_counter() - start), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--device", type=int, default=0)
    options = parser.parse_args()
    with phase("numpy"):
        import numpy as np
    with phase("import"):
        from kernelpack import ops
        from kernelpack.formats.dtype import DType
        from kernelpack.load.load import load
    with phase("bindings"):
        from kernelpack.runtime.driver import connect

        driver = connect()
    with phase("open"):
        library = load(options.bundle, driver=driver)
    with phase("context"), driver.current(options.device):
        pass
    with phase("arrays"):
        shapes = [
            ((M, K), DType.BF16),
            ((G, 3 * N, K), DType.BF16),
            ((G + 1,), DType.U32),
            ((G,), DType.I32),
            ((3, M, N), DType.BF16),
        ]
        sizes = [dtype.bytes_of(int(np.prod(shape))) for shape, dtype in shapes]
        memories = [library.memory(size, options.device) for size in sizes]
        for memory in memories:
            memory.fill(0)
        pairs = zip(memories, shapes, strict=True)
        arrays = [
            ops.DeviceArray(pointer=m.address, shape=s, dtype=d, device=options.device)
            for m, (s, d) in pairs
        ]
    *inputs, out = arrays
    with phase("first_launch"):
        prepared = ops.lora_shrink_qkv.prepare(*inputs, out=out, library=library)
        prepared()
    with phase("first_result"):
        library.read(out.pointer, np.empty(out.shape, np.uint16), options.device, 0)
    with phase("second_launch"):
        prepared()
    print(json.dumps(report(str(library.device(options.device)), str(driver)), indent=2))


def report(device: str, driver: str) -> dict[str, object]:
    """The phases, and their sum up to the first launch without the context."""
    names = list(PHASES)
    counted = [n for n in names[: names.index("first_launch") + 1] if n not in APART]
    return {
        "benchmark": "cold_start",
        "command": " ".join(["python", *sys.argv]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": device,
        "driver": driver,
        "python": sys.version.split()[0],
        "milliseconds": PHASES,
        "import_to_first_launch": round(sum(PHASES[name] for name in counted), 2),
    }


if __name__ == "__main__":
    main()
