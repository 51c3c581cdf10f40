"""A decode step of MLA, its ends alone and whole, on a Hopper GPU.

    python benchmarks/mla_decode_fp8.py --bundle X.kpk [--peers FOLDER] [--out FILE]

`ends` are `mla_decode_absorb` (products, rotation and new rows in one launch) and
`mla_decode_project`, beside torch's bmm of the same products in bf16 and a device copy that moves
as many bytes as weights and tokens are. `steps` are the whole branch, beside a chain of the rivals'
kernels (`mla_decode_chain`), where FOLDER holds an sgl-kernel's `flashmla_ops.abi3.so` and
`sm90/common_ops.abi3.so`. A time is that of one call inside a CUDA graph of many, which rotate
through layers whose weights the L2 cache cannot hold; the median over replays, the rivals taking
turns.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from mla_decode_chain import Chain, load_peers
from timing import Calls, Timed, about_this_run, copy_rate, sets_of, take_turns

import kernelpack
from kernelpack import kv, ops

LATENT, ROPE, NOPE = 512, 64, 128
ROW, PAGE = 656, 64
SCALE = (NOPE + ROPE) ** -0.5


@dataclass(frozen=True)
class Shape:
    """Tokens of a step, each of its own sequence, and heads.

    `topk` > 0: listed keys; 0: all of a sequence.
    """

    tokens: int
    heads: int
    keys: int = 8192
    topk: int = 2048
    splits: int = 1
    passes: float = 0.0

    @property
    def name(self) -> str:
        """Its name for people."""
        of = f"topk {self.topk}" if self.topk else f"of {self.keys}"
        return f"h {self.heads} B {self.tokens} {of}"

    @property
    def weights(self) -> int:
        """Bytes of one end's weights."""
        return self.heads * LATENT * NOPE

    @property
    def ends(self) -> dict[str, int]:
        """Bytes that each end must read and write."""
        heads = 2 * self.tokens * self.heads
        rows = self.tokens * (2 * (LATENT + ROPE) + ROW)
        return {
            "absorb": self.weights + heads * (NOPE + LATENT + 2 * ROPE) + rows,
            "project": self.weights + heads * (LATENT + NOPE),
        }


def ends() -> Iterator[Shape]:
    """Tokens and heads of servers: one GPU's of eight, and all."""
    for heads in (8, 16, 128):
        for tokens in (1, 4, 16, 64, 128):
            yield Shape(tokens, heads)


def steps() -> Iterator[Shape]:
    """The goals' shapes; splits fill the device."""
    for heads in (16, 128):
        for tokens in (1, 4, 16):
            splits = max(1, min(16, 132 // (tokens * -(-heads // 64))))
            yield Shape(tokens, heads, splits=splits, passes=1.3)


class Layers:
    """As many layers as the cache cannot hold: weights, a cache each, and a step's values."""

    def __init__(self, shape: Shape) -> None:
        self.shape, t, h = shape, shape.tokens, shape.heads
        self.count = min(24, sets_of(2 * shape.weights))
        on, half = {"device": "cuda"}, {"device": "cuda", "dtype": torch.bfloat16}
        self.w_uk = torch.randn(self.count, h, LATENT, NOPE, **on).to(torch.float8_e4m3fn)
        self.w_uv = torch.randn(self.count, h, NOPE, LATENT, **on).to(torch.float8_e4m3fn)
        self.w_uk_scale = torch.rand(self.count, h, 4, 1, **on) / 64
        self.w_uv_scale = torch.rand(self.count, h, 1, 4, **on) / 64
        self.q = torch.randn(self.count, t, h, NOPE + ROPE, **half)
        self.new = torch.randn(self.count, t, LATENT + ROPE, **half)
        self.x = torch.randn(self.count, t, h, LATENT, **half)
        self.gamma = torch.randn(LATENT, **half)
        angles = torch.rand(shape.keys + 1, ROPE // 2, **on) * 6
        self.freqs = torch.stack([angles.cos(), angles.sin()], -1).flatten(1).contiguous()
        self.offsets = torch.arange(t + 1, device="cuda", dtype=torch.int32)
        pages = -(-(shape.keys + 1) // PAGE)
        self.table = torch.randperm(t * pages, device="cuda").int().view(t, pages)
        self.lengths = torch.full((t,), shape.keys, device="cuda", dtype=torch.int32)
        self.blocks = torch.zeros(self.count, t * pages, PAGE, ROW, **on, dtype=torch.uint8)
        self._fill(torch.randn(PAGE, LATENT, **on))
        self.indices = self._chosen() if shape.topk else None

    def _fill(self, latent: torch.Tensor) -> None:
        """Rows of some numbers: e4m3 codes, four scales of one, rope values."""
        codes = latent.to(torch.float8_e4m3fn).view(torch.uint8)
        self.blocks[..., :LATENT] = codes
        scales = torch.ones(4, device="cuda").view(torch.uint8)
        self.blocks[..., LATENT : LATENT + 16] = scales
        rope = torch.randn(PAGE, ROPE, device="cuda").bfloat16().view(torch.uint8)
        self.blocks[..., LATENT + 16 :] = rope

    def _chosen(self) -> torch.Tensor:
        """Entries of each token, of its own sequence."""
        shape = self.shape
        chosen = [
            torch.randperm(shape.keys, device="cuda")[: shape.topk] for _ in range(shape.tokens)
        ]
        places = torch.stack(chosen)
        encoded = torch.gather(self.table.long(), 1, places // PAGE) * PAGE + places % PAGE
        return encoded.int().contiguous()

    def cache(self, i: int) -> kv.Paged:
        """A layer's cache."""
        return kv.Paged(self.blocks[i], table=self.table, lengths=self.lengths)

    def step(self, i: int) -> dict[str, Any]:
        """What both ends' ops have of a layer."""
        return {
            "w_uk": self.w_uk[i].view(torch.uint8),
            "w_uk_scale": self.w_uk_scale[i],
            "freqs": self.freqs,
            "gamma": self.gamma,
            "row_offsets": self.offsets,
        }


def launched(prepared: list[Any]) -> Calls:
    """Calls of prepared launches, on the stream that is current then."""
    return [lambda p=p: p(torch.cuda.current_stream().cuda_stream) for p in prepared]


def time_ends(shape: Shape, library: kernelpack.Library, rate: float) -> list[dict[str, Any]]:
    """Both ends, a row each."""
    layers = Layers(shape)
    count = range(layers.count)
    absorb = [
        ops.mla_decode_absorb.prepare(
            layers.q[i], new_kv=layers.new[i], kv=layers.cache(i), library=library, **layers.step(i)
        )
        for i in count
    ]
    project = [
        ops.mla_decode_project.prepare(
            layers.x[i], layers.w_uv[i].view(torch.uint8), layers.w_uv_scale[i], library=library
        )
        for i in count
    ]
    rows = []
    for name, prepared, values, weights in (
        ("absorb", absorb, layers.q[..., :NOPE], layers.w_uk),
        ("project", project, layers.x, layers.w_uv),
    ):
        size, wide = shape.ends[name], weights.to(torch.bfloat16)
        half = torch.empty(layers.count, 2, -(-size // 2), device="cuda", dtype=torch.uint8)
        rival = [
            lambda i=i, v=values, w=wide: torch.bmm(v[i].transpose(0, 1), w[i].transpose(1, 2))
            for i in count
        ]
        timed = {
            "ours": Timed(launched(prepared)),
            "torch_bf16": Timed(rival),
            "copy": Timed([lambda m=m: m[1].copy_(m[0]) for m in half]),
        }
        times = take_turns(timed)
        rows.append(
            {
                "end": name,
                **asdict(shape),
                "bytes": size,
                "microseconds": {word: round(time, 2) for word, time in times.items()},
                "of_copy": round(size / times["ours"] / rate, 3),
            }
        )
    return rows


def time_step(shape: Shape, library: kernelpack.Library, peers: bool) -> dict[str, Any]:
    """The whole branch, beside the rivals' chain."""
    layers = Layers(shape)
    prepared = [
        ops.mla_decode_fp8.prepare(
            layers.q[i],
            layers.new[i],
            layers.cache(i),
            SCALE,
            **layers.step(i),
            w_uv=layers.w_uv[i].view(torch.uint8),
            w_uv_scale=layers.w_uv_scale[i],
            indices=layers.indices,
            num_partitions=shape.splits,
            library=library,
        )
        for i in range(layers.count)
    ]
    timed = {"ours": Timed(launched(prepared))}
    if peers:
        chain = Chain(layers, SCALE)
        timed["chain"] = Timed([lambda i=i: chain.run(i) for i in range(layers.count)])
    times = take_turns(timed)
    row = {
        **asdict(shape),
        "name": shape.name,
        "launches": len(prepared[0].launches),
        "microseconds": {word: round(time, 2) for word, time in times.items()},
    }
    if peers:
        row["ratio"] = round(times["chain"] / times["ours"], 3)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--part", choices=("ends", "steps"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    library, facts = kernelpack.load(options.bundle), {"benchmark": "mla_decode_fp8"}
    facts |= about_this_run()
    if options.peers:
        load_peers(options.peers)
    if options.part != "steps":
        rate, facts["ends"] = copy_rate(), []
        for shape in ends():
            facts["ends"] += (rows := time_ends(shape, library, rate))
            print(*map(json.dumps, rows), sep="\n", flush=True)
            torch.cuda.empty_cache()
    if options.part != "ends":
        facts["steps"] = []
        for shape in steps():
            try:
                facts["steps"].append(time_step(shape, library, options.peers is not None))
            except kernelpack.errors.KernelpackError as error:
                print(f"{shape.name}: {error.what}", file=sys.stderr)
                continue
            print(json.dumps(facts["steps"][-1]), flush=True)
            torch.cuda.empty_cache()
    if options.out:
        options.out.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
