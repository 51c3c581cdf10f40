"""Cache append and index remap beside copies of the same bytes, on a Hopper or Blackwell GPU.

    python benchmarks/kv_cache_append.py --bundle X.kpk [--out FILE]

`of_copy` is the rate of the op, bytes read and written, over that of the best device copy; being
bound by memory, both can come near 1 where there is much to do. `copy` is a copy that moves as many
bytes as a call and takes turns with it: what few tokens cost beside a launch.
"""

import sys
from dataclasses import asdict, dataclass
from typing import Any

import torch
from shapes import measure_shapes
from timing import Calls, Timed, sets_of, take_turns

import kernelpack
from kernelpack import kv, ops
from kernelpack.kernels.kv_operand.rows import FORMATS, LATENT, ROPE

PAGE, BLOCKS = 64, 4096


@dataclass(frozen=True)
class Append:
    """New tokens into rows of a format."""

    tokens: int
    row: str
    scales: int = 0

    @property
    def bytes(self) -> int:
        """The bytes that one call must read and write."""
        row = FORMATS[self.row]
        return self.tokens * (2 * row.width + row.bytes + 4 * self.scales + 8)

    def calls(self, library: kernelpack.Library) -> Calls:
        """Prepared launches, one a set of inputs, into rows all over the cache."""
        row, sets = FORMATS[self.row], sets_of(self.bytes)
        kind = {"device": "cuda", "dtype": getattr(torch, row.dtype.numpy.name, torch.uint8)}
        cache = torch.zeros(BLOCKS, PAGE, row.elements, **kind)
        scales = torch.zeros(BLOCKS, PAGE, self.scales, device="cuda") if self.scales else None
        x = torch.randn(sets, self.tokens, LATENT + ROPE, device="cuda").bfloat16()
        slots = torch.randperm(BLOCKS * PAGE, device="cuda")[: self.tokens]
        prepared = [
            ops.kv_cache_append.prepare(
                x[i, :, :LATENT],
                x[i, :, LATENT:] if row.rope else None,
                kv.Paged(cache, scales=scales),
                slots=slots,
                library=library,
            )
            for i in range(sets)
        ]
        return _started(prepared)


@dataclass(frozen=True)
class Remap:
    """Indices of tokens, of sequences with full tables."""

    tokens: int
    topk: int
    sequences: int

    @property
    def bytes(self) -> int:
        """The bytes that one call must read and write, without the table."""
        return 8 * self.tokens * self.topk

    def calls(self, library: kernelpack.Library) -> Calls:
        """Prepared launches, one a set of indices."""
        whole = {"device": "cuda", "dtype": torch.int32}
        pages, sets = BLOCKS // self.sequences, sets_of(self.bytes)
        table = torch.randperm(BLOCKS, **whole)[: self.sequences * pages]
        cache = torch.zeros(BLOCKS, PAGE, 512, device="cuda", dtype=torch.uint8)
        operand = kv.Paged(cache, table=table.view(self.sequences, pages))
        indices = torch.randint(0, pages * PAGE, (sets, self.tokens, self.topk), **whole)
        of_token = torch.arange(self.tokens, **whole) % self.sequences
        out = torch.empty(sets, self.tokens, self.topk, **whole)
        prepared = [
            ops.kv_remap_indices.prepare(
                indices[i], operand, token_sequences=of_token, out=out[i], library=library
            )
            for i in range(sets)
        ]
        return _started(prepared)


Shape = Append | Remap
TOKENS = (1, 64, 1024, 16384)
SHAPES: tuple[Shape, ...] = (
    *(Append(tokens, "bf16_576") for tokens in TOKENS),
    *(Append(tokens, "fp8_656") for tokens in TOKENS),
    *(Append(16384, row, n) for row, n in (("fp8_576", 0), ("fp8_576", 5), ("fp8_640", 1))),
    *(Remap(tokens, 2048, 16) for tokens in (16, 256, 4096)),
)


def _started(prepared: list[ops.prepared.Prepared]) -> Calls:
    print(prepared[0].variant.id, file=sys.stderr)
    return [lambda p=p: p(torch.cuda.current_stream().cuda_stream) for p in prepared]


def copies(shape: Shape) -> Calls:
    """Device copies that move as many bytes."""
    sets, half = sets_of(shape.bytes), -(-shape.bytes // 2)
    memory = torch.empty(sets, 2, half, device="cuda", dtype=torch.uint8)
    return [lambda m=m: m[1].copy_(m[0]) for m in memory]


def measure(shape: Shape, library: kernelpack.Library, rate: float) -> dict[str, Any]:
    """One row of the table."""
    calls = {"ours": shape.calls(library), "copy": copies(shape)}
    times = take_turns({name: Timed(one) for name, one in calls.items()})
    return {
        "op": type(shape).__name__.lower(),
        **asdict(shape),
        "bytes": shape.bytes,
        "microseconds": {name: round(time, 2) for name, time in times.items()},
        "of_copy": round(shape.bytes / times["ours"] / rate, 3),
    }


if __name__ == "__main__":
    measure_shapes("kv_cache_append", __doc__, SHAPES, measure)
