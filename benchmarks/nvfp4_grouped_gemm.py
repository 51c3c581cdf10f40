"""NVFP4 grouped GEMM beside its rivals on a Hopper GPU: humming-kernels, torch, and a copy.

    python benchmarks/nvfp4_grouped_gemm.py --bundle X.kpk [--humming CONFIGS.json] [--out FILE]

`w4a16` and `w4a4` are our two kernels. `humming` is humming-kernels' best W4A16 configuration out
of its own default and those that CONFIGS.json lists for the shape (it refuses 4-bit tokens with
16 codes a scale); `grouped_mm` is torch's on bf16 weights. `ratio` is the faster rival's time over
w4a16's; `floor` is what a device copy of w4a16's bytes would take. See timing.py for how.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from humming_rival import Humming
from timing import Calls, Timed, about_this_run, copy_rate, sets_of, take_turns

import kernelpack
from kernelpack import ops

SCALES = (0x28, 0x40)  # e4m3 codes of 0.25 to 2, so that sums stay small


@dataclass(frozen=True)
class Shape:
    """Experts, token rows of each, columns of c, elements of a row."""

    e: int
    m: int
    n: int
    k: int

    @property
    def weight_bytes(self) -> int:
        """Codes and scales of all experts."""
        return self.e * self.n * (self.k // 2 + self.k // 16)

    @property
    def bytes(self) -> int:
        """The bytes that one call of w4a16 must read and write."""
        return self.weight_bytes + 2 * self.e * self.m * (self.k + self.n)


SHAPES = (
    Shape(8, 1, 4096, 7168),
    Shape(8, 16, 4096, 7168),
    Shape(8, 16, 7168, 2048),
    Shape(8, 64, 4096, 7168),
    Shape(8, 128, 4096, 7168),
    Shape(8, 512, 4096, 7168),
    Shape(8, 2048, 4096, 7168),
    Shape(32, 8, 512, 7168),
    Shape(32, 8, 7168, 256),
    Shape(256, 1, 4096, 7168),
)


class Inputs:
    """As many sets of weights as the cache cannot hold; tokens and groups are shared."""

    def __init__(self, shape: Shape) -> None:
        e, m, n, k = shape.e, shape.m, shape.n, shape.k
        self.sets = sets_of(shape.weight_bytes) if shape.weight_bytes < 2**30 else 1
        byte = {"device": "cuda", "dtype": torch.uint8}
        self.b = torch.randint(0, 256, (self.sets, e, n, k // 2), **byte)
        atoms = (-(-k // 64), 32, 4, 4)
        self.b_scales = torch.randint(*SCALES, (self.sets, e, -(-n // 128), *atoms), **byte)
        self.a = torch.randn(e * m, k, device="cuda").bfloat16()
        self.packed = torch.randint(0, 256, (e * m, k // 2), **byte)
        blocks = -(-m // 128)
        self.a_scales = torch.randint(*SCALES, (e * blocks, *atoms), **byte)
        word = {"device": "cuda", "dtype": torch.int32}
        self.offsets = torch.arange(0, e * m + 1, m, **word)
        self.scale_offsets = torch.tensor([g * blocks - g * m // 128 for g in range(e)], **word)
        self.ids = torch.arange(e, **word)
        self.expert_scales = torch.full((e,), 2.0**-7, device="cuda")
        self.c = torch.empty(e * m, n, device="cuda", dtype=torch.bfloat16)

    def dense(self, expert: int) -> torch.Tensor:
        """Weights [n, k] of an expert of the first set, bf16."""
        b, n, k = self.b[0, expert], self.b.shape[2], self.a.shape[1]
        positive = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
        numbers = torch.tensor([*positive, *(-x for x in positive)], device="cuda")
        codes = torch.stack([b & 15, b >> 4], -1).reshape(n, k).long()
        scales = self.b_scales[0, expert].view(torch.float8_e4m3fn).float()
        rows = scales.permute(0, 3, 2, 1, 4).reshape(-1, scales.shape[1] * 4)[:n, : k // 16]
        return (numbers[codes] * rows.repeat_interleave(16, 1)).bfloat16()


def ours(inputs: Inputs, library: kernelpack.Library) -> dict[str, Calls]:
    """Prepared launches of both kernels, one a set."""
    groups = (inputs.offsets, inputs.ids, inputs.expert_scales)
    of_packed = (inputs.offsets, inputs.scale_offsets, inputs.ids, inputs.expert_scales)
    keywords: dict[str, Any] = {"out": inputs.c, "library": library}
    w4a16, w4a4 = [], []
    for b, b_scales in zip(inputs.b, inputs.b_scales, strict=True):
        w4a16.append(
            ops.nvfp4_w4a16_grouped_gemm.prepare(inputs.a, b, b_scales, *groups, **keywords)
        )
        of_a = (inputs.packed, b, inputs.a_scales, b_scales)
        w4a4.append(ops.nvfp4_grouped_gemm.prepare(*of_a, *of_packed, **keywords))
    print(*(one.variant.id for one in (w4a16[0], w4a4[0]) if one.variant), flush=True)
    # w4a16's result is the one that is looked at.
    return {"w4a4": [on_stream(one) for one in w4a4], "w4a16": [on_stream(one) for one in w4a16]}


def on_stream(prepared: Callable[[int], object]) -> Callable[[], object]:
    """A launch on torch's stream."""
    return lambda: prepared(torch.cuda.current_stream().cuda_stream)


def grouped_mm(inputs: Inputs, dense: torch.Tensor) -> Calls:
    """Torch's grouped GEMM of bf16 weights [e, n, k], which the cache does not hold."""
    ends = inputs.offsets[1:].contiguous()
    return [lambda: torch._grouped_mm(inputs.a, dense.transpose(1, 2), offs=ends)]


def difference(shape: Shape, inputs: Inputs, calls: Calls) -> float:
    """Our result of the first set beside torch's of the first expert, relative."""
    calls[0]()
    wanted = inputs.a[: shape.m].float() @ inputs.dense(0).float().T * inputs.expert_scales[0]
    return float((inputs.c[: shape.m].float() - wanted).norm() / wanted.norm())


def measure(
    shape: Shape, library: kernelpack.Library, rate: float, humming: Humming | None
) -> dict[str, Any]:
    """One row of the table."""
    inputs = Inputs(shape)
    calls = ours(inputs, library)
    off_by = difference(shape, inputs, calls["w4a16"])
    if shape.e <= 32:
        dense = torch.stack([inputs.dense(e) for e in range(shape.e)])
        calls["grouped_mm"] = grouped_mm(inputs, dense)
    if humming:
        calls |= humming.calls(shape.e, shape.m, shape.n, shape.k, inputs.sets)
    times = take_turns({name: Timed(one) for name, one in calls.items()})
    tuned = [times.pop(name) for name in list(times) if name.startswith("humming")]
    if tuned:
        times["humming"] = min(tuned)
    rivals = [times[name] for name in ("humming", "grouped_mm") if name in times]
    return {
        **asdict(shape),
        "microseconds": {name: round(time, 2) for name, time in times.items()},
        "floor": round(shape.bytes / rate, 2),
        "teraflops": round(2e-6 * shape.e * shape.m * shape.n * shape.k / times["w4a16"], 1),
        "ratio": round(min(rivals) / times["w4a16"], 3) if rivals else None,
        "difference": off_by,
        "sets": inputs.sets,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--humming", type=Path, help="configurations to try, JSON")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    humming = Humming(options.humming) if options.humming else None
    library, rate = kernelpack.load(options.bundle), copy_rate()
    rows = []
    for shape in SHAPES:
        rows.append(measure(shape, library, rate, humming))
        print(json.dumps(rows[-1]), flush=True)
        torch.cuda.empty_cache()
        facts = {
            "benchmark": "nvfp4_grouped_gemm",
            **about_this_run(),
            "copy_bytes_per_microsecond": round(rate),
            "shapes": rows,
        }
        if options.out:
            options.out.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
