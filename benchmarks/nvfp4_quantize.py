"""The NVFP4 quantiser beside a copy of the same bytes, on a Hopper or Blackwell GPU.

    python benchmarks/nvfp4_quantize.py --bundle X.kpk [--out FILE]

`of_copy` is the rate of the quantiser, bytes read and written, over that of the best device copy;
being bound by memory, it can come near 1 where there are many rows. `copy` is a copy that moves as
many bytes as a call and takes turns with it: what few rows cost beside a launch.
"""

import sys
from dataclasses import asdict, dataclass
from typing import Any

import torch
from shapes import measure_shapes
from timing import Calls, Timed, sets_of, take_turns

import kernelpack
from kernelpack import ops
from kernelpack.formats.grouped_scales import group_scale_offsets, scale_blocks


@dataclass(frozen=True)
class Shape:
    """Rows of each group, or of all where `groups` is 0, and elements of a row."""

    rows: int
    k: int
    groups: int = 0
    dtype: str = "bfloat16"

    @property
    def offsets(self) -> list[int]:
        """First row of each group, then the number of rows."""
        return [self.rows * g for g in range(max(1, self.groups) + 1)]

    @property
    def bytes(self) -> int:
        """The bytes that one call must read and write."""
        atoms = scale_blocks(self.offsets) * -(-self.k // 64)
        return self.offsets[-1] * self.k * 5 // 2 + atoms * 512


SHAPES = (
    Shape(16384, 7168),
    Shape(16384, 7168, dtype="float16"),
    Shape(4096, 7168),
    Shape(16384, 2048),
    Shape(512, 7168),
    Shape(64, 7168),
    Shape(2048, 7168, groups=8),
    Shape(128, 7168, groups=32),
    Shape(16, 7168, groups=32),
    Shape(1, 7168, groups=8),
)


def ours(shape: Shape, library: kernelpack.Library) -> Calls:
    """Prepared launches, one a set of inputs."""
    sets, t = sets_of(shape.bytes), shape.offsets[-1]
    x = torch.randn(sets, t, shape.k, device="cuda").to(getattr(torch, shape.dtype))
    blocks = scale_blocks(shape.offsets)
    byte = {"device": "cuda", "dtype": torch.uint8}
    codes = torch.empty(sets, t, shape.k // 2, **byte)
    scales = torch.empty(sets, blocks, -(-shape.k // 64), 32, 4, 4, **byte)
    inputs = groups(shape)
    prepared = [
        ops.nvfp4_quantize.prepare(
            x[i], codes=codes[i], scales=scales[i], library=library, **inputs
        )
        for i in range(sets)
    ]
    print(prepared[0].variant.id, file=sys.stderr)
    return [lambda p=p: p(torch.cuda.current_stream().cuda_stream) for p in prepared]


def groups(shape: Shape) -> dict[str, torch.Tensor]:
    """The inputs that say how rows form groups, and the tensor scales."""
    scales = torch.full((max(1, shape.groups),), 448 * 6 / 5, device="cuda")
    if not shape.groups:
        return {"tensor_scales": scales}
    words = {
        "row_offsets": shape.offsets,
        "scale_offsets": group_scale_offsets(shape.offsets).tolist(),
        "expert_ids": list(range(shape.groups)),
    }
    made = {n: torch.tensor(v, device="cuda", dtype=torch.int32) for n, v in words.items()}
    return {"tensor_scales": scales, **made}


def copies(shape: Shape) -> Calls:
    """Device copies that move as many bytes as the quantiser."""
    sets, half = sets_of(shape.bytes), -(-shape.bytes // 2)
    memory = torch.empty(sets, 2, half, device="cuda", dtype=torch.uint8)
    return [lambda m=m: m[1].copy_(m[0]) for m in memory]


def measure(shape: Shape, library: kernelpack.Library, rate: float) -> dict[str, Any]:
    """One row of the table."""
    calls = {"ours": ours(shape, library), "copy": copies(shape)}
    times = take_turns({name: Timed(one) for name, one in calls.items()})
    return {
        **asdict(shape),
        "bytes": shape.bytes,
        "microseconds": {name: round(time, 2) for name, time in times.items()},
        "gigabytes_per_second": round(shape.bytes / times["ours"] / 1000),
        "of_copy": round(shape.bytes / times["ours"] / rate, 3),
    }


if __name__ == "__main__":
    measure_shapes("nvfp4_quantize", __doc__, SHAPES, measure)
