"""LoRA shrink beside its rivals on a Hopper GPU: SGLang's Triton kernel, torch, and a copy.

    python benchmarks/lora_shrink_qkv.py --bundle X.kpk --sglang FOLDER [--out FILE]

FOLDER holds `chunked_sgmv_shrink.py` of an sglang wheel (`sglang/srt/lora/triton_ops/`). Each
shape runs with the rival's best configuration out of 216 (block_m, block_n, block_k, warps,
stages). A time is that of one call inside a CUDA graph of many calls, which rotate through inputs
larger than the L2 cache: the median over replays, the rivals taking turns. Ratios are the rival's
time over ours. `floor` is what a device copy of the same bytes would take.
"""

import argparse
import importlib.util
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from timing import Calls, Timed, about_this_run, copy_rate, sets_of, take_turns

import kernelpack
from kernelpack import ops


@dataclass(frozen=True)
class Shape:
    """A problem, the rival's best configuration for it, and the ratios to reach."""

    m: int
    k: int
    n: int
    g: int
    config: tuple[int, int, int, int, int]
    passes: float
    aims: float

    @property
    def bytes(self) -> int:
        """The bytes that one call must read and write."""
        return 2 * (self.m * self.k + 3 * self.n * self.k * self.g + 3 * self.n * self.m)


SHAPES = (
    Shape(8192, 7168, 16, 8, (64, 32, 128, 4, 4), 1.06, 1.17),
    Shape(8192, 7168, 64, 8, (64, 64, 64, 4, 4), 1.45, 1.6),
    Shape(4096, 4096, 32, 32, (64, 64, 128, 4, 4), 1.3, 1.45),
    Shape(2048, 4096, 16, 4, (64, 16, 256, 4, 4), 1.7, 2.2),
    Shape(128, 7168, 16, 32, (16, 16, 256, 4, 4), 2.0, 2.5),
    Shape(128, 7168, 64, 32, (16, 64, 256, 8, 4), 1.07, 1.14),
    Shape(16, 7168, 16, 4, (16, 16, 256, 4, 4), 3.0, 4.0),
)


class Inputs:
    """As many sets of inputs as the cache cannot hold; set i uses adapters i * g and up."""

    def __init__(self, shape: Shape) -> None:
        self.sets = sets_of(shape.bytes)
        half = {"device": "cuda", "dtype": torch.bfloat16}
        word = {"device": "cuda", "dtype": torch.int32}
        self.a = torch.randn(self.sets, shape.m, shape.k, **half)
        self.b = torch.empty(self.sets * shape.g, 3 * shape.n, shape.k, **half).normal_()
        self.offsets = torch.arange(0, shape.m + 1, shape.m // shape.g, **word)
        first = torch.arange(0, self.sets * shape.g, shape.g, **word)
        self.ids = first[:, None] + torch.arange(shape.g, **word)[None]


def ours(shape: Shape, inputs: Inputs, library: kernelpack.Library) -> tuple[Calls, torch.Tensor]:
    """Prepared launches, one a set, and the tensor they write: [sets, 3, m, n]."""
    out = torch.full((inputs.sets, 3, shape.m, shape.n), float("nan")).to("cuda", torch.bfloat16)
    prepared = [
        ops.lora_shrink_qkv.prepare(
            inputs.a[i], inputs.b, inputs.offsets, inputs.ids[i], out=out[i], library=library
        )
        for i in range(inputs.sets)
    ]
    print(prepared[0].variant.id, file=sys.stderr)
    return [lambda p=p: p(torch.cuda.current_stream().cuda_stream) for p in prepared], out


def sglang(shape: Shape, inputs: Inputs, kernel: Any) -> tuple[Calls, torch.Tensor]:
    """The rival's calls, one a set, and the tensor they write: [sets, m, 3n]."""
    block_m, block_n, block_k, warps, stages = shape.config
    rows = shape.m // shape.g
    starts = [g * rows + r for g in range(shape.g) for r in range(0, rows, block_m)]
    segments = torch.tensor([*starts, shape.m], device="cuda", dtype=torch.int32)
    owner = torch.tensor([s // rows for s in starts], device="cuda", dtype=torch.int32)
    order = torch.arange(shape.m, device="cuda", dtype=torch.int32)
    ranks = torch.full((inputs.sets * shape.g,), shape.n, device="cuda", dtype=torch.int32)
    out = torch.empty(inputs.sets, shape.m, 3 * shape.n, device="cuda", dtype=torch.bfloat16)
    owners = [owner + i * shape.g for i in range(inputs.sets)]
    grid = (-(-3 * shape.n // block_n), len(starts))
    constants = {"N": 3 * shape.n, "K": shape.k, "NUM_SLICES": 3}
    blocks = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k}

    def call(i: int) -> None:
        kernel[grid](
            *(inputs.a[i], inputs.b, out[i], segments, owners[i], ranks, order, len(starts)),
            **constants,
            **blocks,
            num_warps=warps,
            num_stages=stages,
        )

    return [lambda i=i: call(i) for i in range(inputs.sets)], out


def grouped_mm(shape: Shape, inputs: Inputs) -> Calls:
    """torch._grouped_mm, and the copy that makes planes of its result."""
    ends = inputs.offsets[1:]

    def call(i: int) -> torch.Tensor:
        weights = inputs.b[i * shape.g : (i + 1) * shape.g].transpose(1, 2)
        flat = torch._grouped_mm(inputs.a[i], weights, offs=ends)
        return flat.view(shape.m, 3, shape.n).permute(1, 0, 2).contiguous()

    return [lambda i=i: call(i) for i in range(inputs.sets)]


def load_rival(folder: Path) -> Any:
    """The rival's kernel from its file, without the package around it."""
    for name in ("sglang", "sglang.srt", "sglang.srt.lora", "sglang.srt.lora.triton_ops"):
        sys.modules[name] = ModuleType(name)
    unused: dict[str, dict[str, object]] = {
        "sglang.srt.lora.triton_ops.lora_tuning_config": {"get_lora_shrink_config": None},
        "sglang.srt.lora.utils": {"LoRABatchInfo": SimpleNamespace},
        "sglang.srt.utils": {"cached_triton_kernel": lambda _key: lambda kernel: kernel},
    }
    for name, names in unused.items():
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(names)
    path = folder / "chunked_sgmv_shrink.py"
    spec = importlib.util.spec_from_file_location("chunked_sgmv_shrink", path)
    assert spec and spec.loader, path
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module._chunked_lora_shrink_kernel


def measure(shape: Shape, library: kernelpack.Library, kernel: Any, rate: float) -> dict[str, Any]:
    """One row of the table."""
    inputs = Inputs(shape)
    our_calls, our_out = ours(shape, inputs, library)
    rival_calls, rival_out = sglang(shape, inputs, kernel)
    calls = {"ours": our_calls, "sglang": rival_calls, "grouped_mm": grouped_mm(shape, inputs)}
    times = take_turns({name: Timed(one) for name, one in calls.items()})
    planes = rival_out.view(inputs.sets, shape.m, 3, shape.n).permute(0, 2, 1, 3).float()
    error = (our_out.float() - planes).abs().max() / planes.abs().max()
    return {
        **asdict(shape),
        "microseconds": {name: round(time, 2) for name, time in times.items()},
        "floor": round(shape.bytes / rate, 2),
        "ratio": round(times["sglang"] / times["ours"], 3),
        "difference": float(error),
        "sets": inputs.sets,
    }


def show(row: dict[str, Any]) -> None:
    times, shape = row["microseconds"], (row["m"], row["k"], row["n"], row["g"])
    verdict = "pass" if row["ratio"] >= row["passes"] else "short"
    print(
        f"{shape!s:24} ours {times['ours']:7.2f}  sglang {times['sglang']:7.2f}  "
        f"grouped_mm {times['grouped_mm']:7.2f}  floor {row['floor']:6.2f}  "
        f"x{row['ratio']:.2f} ({verdict} {row['passes']}, aim {row['aims']})  "
        f"difference {row['difference']:.1e}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--sglang", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    library, kernel, rate = kernelpack.load(options.bundle), load_rival(options.sglang), copy_rate()
    rows = []
    for shape in SHAPES:
        rows.append(measure(shape, library, kernel, rate))
        show(rows[-1])
        torch.cuda.empty_cache()
    facts = {
        "benchmark": "lora_shrink_qkv",
        **about_this_run(),
        "copy_bytes_per_microsecond": round(rate),
        "shapes": rows,
    }
    if options.out:
        options.out.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
