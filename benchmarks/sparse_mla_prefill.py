"""Sparse MLA prefill beside FlashMLA's own kernel on a Hopper GPU.

    python benchmarks/sparse_mla_prefill.py --bundle X.kpk --flash-mla FOLDER [--out FILE]

FOLDER holds `flashmla_ops.abi3.so` of an sgl-kernel wheel. Its kernel takes 64 or 128 heads; fewer
are padded with zeros for it, as servers do, and the time is that of the padded call alone. Beside
rows of fp8 it has bf16 ones. Rows are chosen at random from pools that fit the L2 cache, or do not.
A time is that of one call inside a CUDA graph, the median over replays, the rivals taking turns; a
graph lasts some 25 ms. Rates count the products of the heads that are there: 2 * t * h * topk *
(d + 512). A GPU under its power limit lowers its clock, so differences of less than 5 % are not
proven by one run.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from timing import Calls, Timed, about_this_run, check_agree, sets_of, take_turns

import kernelpack
from kernelpack import kv, ops

LATENT = 512
INLINE_SCALES = 656  # bytes of a row that has its scales in it
GRAPH_US = 25_000
GUESSED_RATE = 400e6  # products a microsecond, to guess how many calls fill a graph


@dataclass(frozen=True)
class Shape:
    """A problem, and the ratio to reach and the one to aim at.

    `layers` > 0: rows lie in pages of 64, blocks in random order with so many layers between them.
    `row` is the cache's format; the rival's rows are the bf16 ones that those of fp8 come from.
    """

    pool: int
    h: int = 128
    topk: int = 2048
    d: int = 576
    t: int = 4096
    row: str = "bf16"
    layers: int = 0
    passes: float = 0.0
    aims: float = 0.0

    @property
    def products(self) -> int:
        """Multiplications and additions."""
        return 2 * self.t * self.h * self.topk * (self.d + LATENT)

    @property
    def name(self) -> str:
        """Its name for people."""
        paged = f" paged/{self.layers}" if self.layers else ""
        return f"{self.row} h {self.h} d {self.d} topk {self.topk} pool {self.pool}{paged}"


def shapes() -> Iterator[Shape]:
    """The goals' shapes first, then those that are shown too."""
    pools = (8192, 32_768, 131_072)
    for pool, passes, aims in zip(pools, (0.95, 1.0, 1.0), (1.1, 1.12, 1.05), strict=True):
        yield Shape(pool, passes=passes, aims=aims)
        for h in (8, 16):
            yield Shape(pool, h=h, passes=1.2, aims=1.2)
        for h in (32, 64):
            yield Shape(pool, h=h)
        yield Shape(pool, row="fp8_656", passes=0.75, aims=0.9)
    for row in ("fp8_576", "fp8_640"):
        yield Shape(32_768, row=row, passes=1.31, aims=1.5)
        for h in (8, 16):
            yield Shape(32_768, h=h, row=row, passes=1.8, aims=1.8)
    for topk in (512, 1024):
        for h in (8, 16, 64, 128):
            yield Shape(32_768, h=h, topk=topk)
    yield Shape(8192, h=64, topk=512, d=512)
    yield Shape(8192, h=128, topk=1024, d=512)
    yield Shape(32_768, layers=1)
    yield Shape(32_768, layers=2)


class Inputs:
    """Sets of queries and indices that the cache cannot hold, and one pool of rows."""

    def __init__(self, shape: Shape) -> None:
        self.shape, half = shape, {"device": "cuda", "dtype": torch.bfloat16}
        self.sets = min(3, sets_of(2 * shape.t * shape.h * (shape.d + LATENT)))
        self.q = torch.randn(self.sets, shape.t, shape.h, shape.d, **half) / 10
        self.rows = torch.randn(shape.pool, shape.d, **half) / 10
        self.width = shape.d if shape.row == "bf16" else int(shape.row.removeprefix("fp8_"))
        self.indices = torch.empty(self.sets, shape.t, shape.topk, device="cuda", dtype=torch.int32)
        for one in self.indices.view(-1, shape.topk):
            one.copy_(torch.randperm(shape.pool, device="cuda")[: shape.topk])

    def paged(self) -> tuple[kv.Operand, torch.Tensor]:
        """The rows in shuffled blocks of 64, and where each is: an encoded index."""
        blocks, layers = self.shape.pool // 64, self.shape.layers
        order = torch.randperm(blocks, device="cuda")
        cache = torch.empty(blocks, 1, layers, 64, 1, self.shape.d).to("cuda", torch.bfloat16)
        cache[order, 0, layers - 1, :, 0] = self.rows.view(blocks, 64, -1)
        encoded = (order[:, None] * 64 + torch.arange(64, device="cuda")).view(-1).int()
        return kv.Paged(cache, layer=layers - 1), encoded


def stored(inputs: Inputs, library: kernelpack.Library) -> kv.Operand:
    """The rows in the shape's format."""
    if inputs.shape.row == "bf16":
        return kv.Ragged(inputs.rows)
    pool = inputs.shape.pool
    cache = torch.empty(pool, inputs.width, device="cuda", dtype=torch.uint8)
    scales = None if inputs.width == INLINE_SCALES else torch.empty(pool, device="cuda")
    operand = kv.Ragged(cache, scales=scales)
    slots = torch.arange(pool, device="cuda", dtype=torch.int32)
    latent, rope = inputs.rows[:, :LATENT], inputs.rows[:, LATENT:]
    torch.cuda.synchronize()
    ops.kv_cache_append(latent, rope, operand, slots=slots, library=library)
    torch.cuda.synchronize()
    return operand


def ours(inputs: Inputs, library: kernelpack.Library) -> tuple[Calls, torch.Tensor, str]:
    """Prepared launches, one a set; what they write; the variant."""
    shape, indices, cache = inputs.shape, inputs.indices, stored(inputs, library)
    if shape.layers:
        cache, encoded = inputs.paged()
        indices = encoded[indices.long()]
    out = torch.full((inputs.sets, shape.t, shape.h, LATENT), float("nan"), dtype=torch.bfloat16)
    out = out.to("cuda")
    lse = torch.empty(inputs.sets, shape.t, shape.h, device="cuda")
    prepared = [
        ops.sparse_mla_prefill.prepare(
            inputs.q[i],
            cache,
            indices[i],
            shape.d**-0.5,
            out=out[i],
            lse=lse[i],
            max_logits=torch.empty_like(lse[i]),
            library=library,
        )
        for i in range(inputs.sets)
    ]
    calls = [lambda p=p: p(torch.cuda.current_stream().cuda_stream) for p in prepared]
    return calls, out, prepared[0].variant.id


def flash_mla(inputs: Inputs) -> tuple[Calls, list[torch.Tensor]]:
    """The rival's calls, one a set, and what each gave last."""
    shape, found = inputs.shape, [torch.empty(0)] * inputs.sets
    padded = -(-shape.h // 64) * 64
    q = torch.zeros(inputs.sets, shape.t, padded, shape.d, device="cuda", dtype=torch.bfloat16)
    q[:, :, : shape.h] = inputs.q
    rows, indices = inputs.rows[:, None], inputs.indices[:, :, None]
    forward = torch.ops.sgl_kernel.sparse_prefill_fwd.default

    def call(i: int) -> None:
        found[i] = forward(q[i], rows, indices[i], shape.d**-0.5, LATENT, None, None)[0]

    return [lambda i=i: call(i) for i in range(inputs.sets)], found


def measure(shape: Shape, library: kernelpack.Library) -> dict[str, Any]:
    """One row of the table."""
    inputs = Inputs(shape)
    our_calls, out, variant = ours(inputs, library)
    rival_calls, found = flash_mla(inputs)
    calls = max(2 * inputs.sets, round(GRAPH_US * GUESSED_RATE / shape.products))
    timed = {"ours": Timed(our_calls, calls), "flash_mla": Timed(rival_calls, calls)}
    times = take_turns(timed)
    theirs = torch.stack([one[:, : shape.h] for one in found]).double()
    error = (out.double() - theirs).norm() / theirs.norm()
    return {
        **asdict(shape),
        "name": shape.name,
        "variant": variant,
        "microseconds": {name: round(time, 1) for name, time in times.items()},
        "tflops": {n: round(shape.products / time / 1e6, 1) for n, time in times.items()},
        "ratio": round(times["flash_mla"] / times["ours"], 3),
        "difference": check_agree(shape.name, float(error)),
    }


def show(row: dict[str, Any]) -> None:
    times, rates = row["microseconds"], row["tflops"]
    goal = ""
    if row["passes"]:
        verdict = "pass" if row["ratio"] >= row["passes"] else "short"
        goal = f" ({verdict} {row['passes']}, aim {row['aims']})"
    print(
        f"{row['name']:42} ours {times['ours']:8.1f} us {rates['ours']:6.1f} TF  flash_mla "
        f"{times['flash_mla']:8.1f} us {rates['flash_mla']:6.1f} TF  x{row['ratio']:.3f}{goal}  "
        f"difference {row['difference']:.1e}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--flash-mla", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="", help="shapes whose name holds this")
    parser.add_argument("--tokens", type=int, default=4096)
    options = parser.parse_args()
    torch.ops.load_library(options.flash_mla / "flashmla_ops.abi3.so")
    library, rows = kernelpack.load(options.bundle), []
    facts = {"benchmark": "sparse_mla_prefill", **about_this_run(), "shapes": rows}
    for shape in shapes():
        if options.only not in shape.name:
            continue
        try:
            rows.append(measure(replace(shape, t=options.tokens), library))
        except kernelpack.errors.SelectionError as error:
            print(f"{shape.name}: {error.what}", file=sys.stderr)
            continue
        show(rows[-1])
        torch.cuda.empty_cache()
        if options.out:  # after each: what ends a run must not lose the others
            options.out.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
