"""What the NVFP4 grouped GEMM's Blackwell tiles execute to store C, counted on the emulator.

Each tile, for each type of output, on a few problems: warp instructions in all, and of the stores
the requests to L2: a warp's store, or a row of a box, is one for each line of 128 bytes that it
touches. The digest is that of C, so that what two states of the kernel compute can be compared.
Writes benchmarks/results/nvfp4_emulated.json under a name for the state.

    .venv/bin/python -m benchmarks.nvfp4_emulated BUNDLE STATE
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kernelpack.bundle.reader import Bundle, open_bundle
from kernelpack.emulator.call import call
from kernelpack.emulator.events import Access, Bus
from kernelpack.emulator.ptx.parser import parse
from kernelpack.formats.dtype import DType
from kernelpack.kernels.nvfp4_grouped_gemm.problem import KERNEL, Case, inputs
from kernelpack.spec.artifact import digest
from kernelpack.spec.variant import Variant

RECORD = Path(__file__).parent / "results/nvfp4_emulated.json"
WHAT = "NVFP4's sm_100a tiles on the emulator, a device of two multiprocessors"
DEVICE = {"sm_count": 2}
CELLS_OF_A_LINE = 32
"""Of four bytes each."""

MANY = {"name": "512 tokens, n 4096, k 1024", "e": 1, "n": 4096, "k": 1024, "tokens": (512,)}
PROBLEMS = (
    {"name": "256 tokens", "e": 1, "n": 512, "k": 512, "tokens": (256,), "ids": (0,)},
    {"name": "partial tiles", "e": 3, "n": 264, "k": 512, "tokens": (150, 9, 43), "ids": (1, 0, 2)},
    {"name": "one token each", "e": 8, "n": 512, "k": 256, "tokens": (1,) * 8, "ids": range(8)},
    {
        "name": "empty groups",
        "e": 4,
        "n": 256,
        "k": 256,
        "tokens": (*(0,) * 30, 3, *(0,) * 8, 9),
        "ids": tuple(i % 4 for i in range(40)),
    },
)


class Requests:
    """Listens for what is written to global memory, and counts the lines of each write."""

    def __init__(self) -> None:
        self.lines = 0

    def join(self, _report: object) -> "Requests":
        """Itself, as the check that a run asks for."""
        return self

    def listen(self, bus: Bus) -> None:
        """Hear of accesses."""
        bus.listen(Access, self.on_access)

    def on_access(self, event: Access) -> None:
        """A store of a warp, or a box."""
        if event.write and event.unit.kind == "global":
            self.lines += len(np.unique(np.asarray(event.cells) // CELLS_OF_A_LINE))


def cases(variant: Variant) -> Iterator[Case]:
    """The problems, with the variant's type of output; the large one for the largest tile."""
    axes = dict(variant.axes)
    dtype = DType[str(axes["OUT"]).upper()]
    if axes["TILE_TOKENS"] == 256:
        yield Case(**MANY, ids=(0,), out_dtype=dtype)
    for problem in PROBLEMS:
        yield Case(**{**problem, "ids": tuple(problem["ids"])}, out_dtype=dtype)


def counted(bundle: Bundle, variant: Variant) -> Iterator[tuple[str, dict[str, object]]]:
    """What a variant does on each problem, by the problem's name."""
    program = parse(bundle.ptx(bundle.find(variant.id).ptx_digest).text)
    for case in cases(variant):
        requests = Requests()
        arrays = inputs(case)
        called = call(program, variant, case.sizes | DEVICE, arrays, checks=[requests.join])
        called.result.raise_on_error()
        yield (
            case.name,
            {
                "warp_instructions": called.result.steps,
                "lines_stored": requests.lines,
                "c": digest(called.outputs["c"].tobytes())[:16],
            },
        )


def main(path: Path, state: str) -> None:
    """Count every Blackwell variant of a bundle."""
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {"what": WHAT, "states": {}}
    found = record["states"][state] = {}
    bundle = open_bundle(path)
    for variant in bundle.variants(KERNEL):
        if variant.arch.name == "sm_100a":
            found[variant.id] = dict(counted(bundle, variant))
            print(variant.id, found[variant.id], flush=True)
            RECORD.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
