"""The CPU time of a call of each op, beside `torch.mm` in the same process.

    python benchmarks/calls.py --bundle X.kpk [--out FILE]

Of each op a small case: `op` fills outputs that it is given, `new` makes them, `torch_out` and
`torch_new` are the overloads of `torch.ops.kernelpack`, `prepared` is a launch packed before.
`moved` is `op` with two sets of arrays in turn, so that every address is another one each time. A
figure is the median of rounds that take turns, each the mean of a batch that the GPU's queue holds;
no wait for the GPU is in it. `over_mm` divides by `torch.mm` of 128 x 128 bf16. With the extension
(`extension/`) where it is installed; `--pure` leaves it alone.
"""

import argparse
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
if "--pure" in sys.argv:
    sys.modules["kernelpack_launch"] = None  # type: ignore[assignment] # before it is looked for

from kernelpack import kv, load, ops
from kernelpack.frameworks import torch_ops
from kernelpack.load.library import Library
from tests.gpu.arrays import torch_tensor
from tests.gpu.asked import CASES, Asked

BATCH, ROUNDS = 100, 30

Way = Callable[[], object]


def main() -> None:
    options = parse()
    library = load(options.bundle)
    torch_ops.register(library)
    found = {name: timed(ways(library, name)) for name in CASES}
    found["mla_decode_fp8"] = timed(chain(library))
    text = json.dumps(facts(library, found), indent=1)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--pure", action="store_true", help="without the extension")
    return parser.parse_args()


def facts(library: Library, found: dict[str, dict[str, float]]) -> dict[str, Any]:
    return {
        "benchmark": "calls",
        "command": " ".join(["python", *sys.argv]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": str(library.device(0)),
        "driver": str(library.driver),
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "extension": bool(sys.modules.get("kernelpack_launch")),
        "batch": BATCH,
        "rounds": ROUNDS,
        "microseconds": found,
        "over_mm": {
            name: {way: round(us / each["mm"], 2) for way, us in each.items() if way != "mm"}
            for name, each in found.items()
        },
    }


def timed(ways: dict[str, Way]) -> dict[str, float]:
    """Microseconds of a call by each way, and of torch.mm beside them."""
    a = torch.randn(128, 128, device="cuda", dtype=torch.bfloat16)
    ways = {"mm": lambda: torch.mm(a, a), **ways}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            torch.cuda.synchronize()
            times[name].append(batch(way) / 1000)
    torch.cuda.synchronize()
    return {name: round(median(values), 2) for name, values in times.items()}


def batch(way: Way) -> float:
    """Nanoseconds of one call, the mean of a batch."""
    way()
    start = perf_counter_ns()
    for _ in range(BATCH):
        way()
    return (perf_counter_ns() - start) / BATCH


def ways(library: Library, name: str) -> dict[str, Way]:
    """An op's calls."""
    asked = Asked(name)
    stem = asked.definition.stem
    face, op = torch_ops.FACES[stem], ops.OPS[stem]
    first, second = tensors(asked), tensors(asked)
    inputs, keywords, outputs = first
    given = {**keywords, **outputs}
    overload = getattr(torch.ops.kernelpack, stem)
    found: dict[str, Way] = {
        "op": lambda: op.fill(*inputs, **given, library=library),
        "moved": in_turn(op, library, [first, second]),
    }
    prepared = op.operation.prepare(op.tensors(*inputs, **given, library=library))
    found["prepared"] = lambda: prepared(0)
    if face.traced is None:
        found["torch_out"] = lambda: overload(*inputs, **given)
        return found
    found["torch_out"] = lambda: overload.out(*inputs, **given)
    found["torch_new"] = lambda: overload(*inputs, **keywords)
    if op.tensors is op.request:
        found["new"] = lambda: op(*inputs, **keywords, library=library)
    return found


def tensors(asked: Asked) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """Inputs, keywords and outputs of a case."""
    face = torch_ops.FACES[asked.definition.stem]
    inputs = [tensor(value) for value in asked.inputs(face)]
    keywords = {word: tensor(value) for word, value in asked.keywords(face).items()}
    if face.traced is None:
        return inputs, keywords, {word: tensor(array) for word, array in asked.written.items()}
    made = torch_ops.made(torch, face, *inputs, **keywords)
    return inputs, keywords, dict(zip(face.outputs, made, strict=True))


def tensor(value: Any) -> Any:
    return value if isinstance(value, bool | float) else torch_tensor(torch, value)


def in_turn(op: Any, library: Library, sets: list[Any]) -> Way:
    def call() -> None:
        sets.reverse()
        inputs, keywords, outputs = sets[0]
        op.fill(*inputs, **keywords, **outputs, library=library)

    return call


def chain(library: Library) -> dict[str, Way]:
    """A step of mla_decode_fp8: 4 tokens, 16 heads, 2 splits of 512 keys."""
    tokens, heads, keys, page = 4, 16, 512, 64
    on: dict[str, Any] = {"device": "cuda"}
    pages = keys // page + 1
    blocks = torch.zeros(tokens * pages, page, 656, dtype=torch.uint8, **on)
    given = {
        "w_uk": torch.zeros(heads, 512, 128, dtype=torch.uint8, **on),
        "w_uk_scale": torch.ones(heads, 4, 1, **on),
        "w_uv": torch.zeros(heads, 128, 512, dtype=torch.uint8, **on),
        "w_uv_scale": torch.ones(heads, 1, 4, **on),
        "gamma": torch.ones(512, **on),
        "freqs": torch.zeros(keys + page, 64, **on),
        "row_offsets": torch.arange(tokens + 1, dtype=torch.int32, **on),
        "num_partitions": 2,
        "library": library,
    }
    q = torch.zeros(tokens, heads, 192, dtype=torch.bfloat16, **on)
    new = torch.zeros(tokens, 576, dtype=torch.bfloat16, **on)
    table = torch.arange(tokens * pages, dtype=torch.int32, **on).view(tokens, pages)
    cache = kv.Paged(
        blocks, table=table, lengths=torch.full((tokens,), keys, dtype=torch.int32, **on)
    )
    out = torch.empty(tokens, heads, 128, dtype=torch.bfloat16, **on)
    size = ops.mla_decode_fp8.workspace_bytes(tokens, heads, 2)
    work = torch.empty(size, dtype=torch.uint8, **on)
    call = ops.mla_decode_fp8
    prepared = call.prepare(q, new, cache, 0.1, out=out, workspace=work, **given)
    return {
        "op": lambda: call(q, new, cache, 0.1, out=out, workspace=work, **given),
        "new": lambda: call(q, new, cache, 0.1, **given),
        "prepared": lambda: prepared(0),
    }


if __name__ == "__main__":
    main()
