"""MLA decode attention, its combine included, beside FlashMLA's on a Hopper GPU.

    python benchmarks/mla_decode_attention.py --bundle X.kpk --flash-mla FOLDER [--out FILE]

FOLDER holds `flashmla_ops.abi3.so` of an sgl-kernel wheel. Listed keys are 2048 of 656-byte rows,
beside its sparse decoding; fewer than 64 heads are padded with zeros for it, as servers do. Dense
keys are all of a sequence's 8192, in pages of 64: bf16 beside bf16, and e4m3 beside e4m3, where it
takes queries that are quantised already and ours come as bf16. Rows are chosen at random from a
pool of 8192 for each sequence, at most 131,072. A time is that of one step inside a CUDA graph,
the median over replays, the rivals taking turns; ours is `mla_decode_attention` and, with several
splits, `mla_decode_combine`. Of each shape all of `--splits` are timed, and the least counts; the
one that `partitions` would take is printed. A GPU under its power limit lowers its clock, so
differences of less than 5 % are not proven by one run.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from timing import Calls, Timed, about_this_run, check_agree, sets_of, take_turns

import kernelpack
from kernelpack import kv, ops
from kernelpack.kernels.mla_decode_attention.partitions import partitions

LATENT, DEPTH, PAGE, KEYS = 512, 576, 64, 8192
SCALE = 192**-0.5


@dataclass(frozen=True)
class Shape:
    """Tokens of a step, `new` of each sequence, and what to reach.

    `topk` 0: keys are all of the sequence's. `passes` and `aims` are microseconds; `times` is how
    many times as fast as FlashMLA.
    """

    batch: int
    h: int = 128
    new: int = 1
    topk: int = 2048
    row: str = "fp8_656"
    passes: float = 0.0
    aims: float = 0.0
    times: float = 0.0

    @property
    def tokens(self) -> int:
        return self.batch * self.new

    @property
    def keys(self) -> int:
        return self.topk or KEYS

    @property
    def name(self) -> str:
        """Its name for people."""
        of = f"topk {self.topk}" if self.topk else f"dense {KEYS}"
        return f"{self.row} h {self.h} B {self.batch} q {self.new} {of}"


def shapes() -> Iterator[Shape]:
    """The goals' shapes first, then those that are shown too."""
    yield Shape(1, passes=15, aims=11)
    yield Shape(16, passes=36, aims=28)
    yield Shape(64, passes=90, aims=75)
    yield Shape(128, new=2, passes=353, aims=295)
    for h in (8, 16):
        yield Shape(8, h=h, passes=15, aims=9)
        yield Shape(8, h=h, row="bf16_576")
    for batch in (1, 16, 64):
        yield Shape(batch, row="bf16_576")
    for batch in (16, 128):
        yield Shape(batch, topk=0, row="fp8_576", times=0.9)
        yield Shape(batch, topk=0, row="bf16_576")


class Inputs:
    """Sets of queries and entries that the cache cannot hold, and one pool of rows."""

    def __init__(self, shape: Shape, library: kernelpack.Library) -> None:
        self.shape, half = shape, {"device": "cuda", "dtype": torch.bfloat16}
        moved = shape.tokens * shape.keys * 656 + 2 * shape.tokens * shape.h * DEPTH
        self.sets, self.pool = min(8, sets_of(moved)), min(shape.batch * KEYS, 131_072)
        self.q = torch.randn(self.sets, shape.tokens, shape.h, DEPTH, **half) / 10
        self.rows = torch.randn(self.pool, DEPTH, **half) / 10
        self.blocks = self._stored(library)
        self.indices = torch.stack([self._listed() for _ in range(self.sets)])
        order = torch.randperm(self.pool // PAGE, device="cuda", dtype=torch.int32)
        pages = KEYS // PAGE
        of = torch.arange(shape.batch * pages, device="cuda") % len(order)
        self.table = order[of].view(shape.batch, pages).contiguous()
        cached = KEYS - shape.new
        self.lengths = torch.full((shape.batch,), cached, device="cuda", dtype=torch.int32)

    def _listed(self) -> torch.Tensor:
        tokens, topk = self.shape.tokens, max(1, self.shape.topk)
        listed = [torch.randperm(self.pool, device="cuda")[:topk] for _ in range(tokens)]
        return torch.stack(listed).int()

    def _stored(self, library: kernelpack.Library) -> torch.Tensor:
        """Blocks of the pool's rows in the shape's format."""
        if self.shape.row == "bf16_576":
            return self.rows.view(-1, PAGE, DEPTH)
        width = int(self.shape.row.removeprefix("fp8_"))
        blocks = torch.zeros(self.pool // PAGE, PAGE, width, device="cuda", dtype=torch.uint8)
        slots = torch.arange(self.pool, device="cuda", dtype=torch.int32)
        latent, rope = self.rows[:, :LATENT], self.rows[:, LATENT:]
        torch.cuda.synchronize()
        ops.kv_cache_append(latent, rope, kv.Paged(blocks), slots=slots, library=library)
        torch.cuda.synchronize()
        return blocks


class Ours:
    """Prepared steps with a number of splits, one a set; what the last ones gave."""

    def __init__(self, inputs: Inputs, library: kernelpack.Library, splits: int) -> None:
        shape = inputs.shape
        self.out = torch.full((inputs.sets, shape.tokens, shape.h, LATENT), float("nan"))
        self.out = self.out.to("cuda", torch.bfloat16)
        self.variant, self.calls = "", []
        sides = (splits, shape.tokens, shape.h)
        parts = {
            "partial_out": torch.empty(*sides, LATENT, device="cuda"),
            "partial_lse": torch.empty(sides, device="cuda"),
        }
        cache = kv.Paged(inputs.blocks, table=inputs.table, lengths=inputs.lengths)
        for i in range(inputs.sets):
            keys = {"indices": inputs.indices[i]} if shape.topk else {"mask": "causal"}
            outs = {"out": self.out[i]} if splits == 1 else parts
            attend = ops.mla_decode_attention.prepare(
                inputs.q[i], cache, SCALE, **keys, **outs, library=library
            )
            self.variant = attend.variant.id
            self.calls.append(attend if splits == 1 else self._both(attend, parts, i, library))

    def _both(
        self,
        attend: Callable[[int], object],
        parts: dict[str, torch.Tensor],
        i: int,
        library: kernelpack.Library,
    ) -> Callable[[int], None]:
        join = ops.mla_decode_combine.prepare(**parts, out=self.out[i], library=library)

        def call(stream: int) -> None:
            attend(stream)
            join(stream)

        return call

    def all_calls(self) -> Calls:
        return [lambda c=c: c(torch.cuda.current_stream().cuda_stream) for c in self.calls]


def flash_mla(inputs: Inputs) -> tuple[Calls, list[torch.Tensor]]:
    """The rival's calls, one a set, and what each gave last; its plan is made once, not timed."""
    shape, found = inputs.shape, [torch.empty(0)] * inputs.sets
    padded = -(-shape.h // 64) * 64
    batch, new = (shape.tokens, 1) if shape.topk else (shape.batch, shape.new)
    q = torch.zeros(inputs.sets, batch, new, padded, DEPTH, device="cuda", dtype=torch.bfloat16)
    q[..., : shape.h, :] = inputs.q.view(inputs.sets, batch, new, shape.h, DEPTH)
    cache = inputs.blocks[:, :, None]
    scheduled: list[Any] = [None, None]
    lengths = inputs.lengths + shape.new
    rows = _as_656(inputs) if shape.topk else cache

    def sparse(i: int) -> None:
        found[i], _, *plan = torch.ops.sgl_kernel.sparse_decode_fwd.default(
            q[i], rows, inputs.indices[i][:, None], None, None, *scheduled,
            None, None, None, LATENT, SCALE,
        )  # fmt: skip
        scheduled[:] = scheduled if scheduled[0] is not None else plan

    def dense(i: int) -> None:
        found[i], _, *plan = torch.ops.sgl_kernel.dense_decode_fwd.default(
            q[i], cache, LATENT, lengths, inputs.table, SCALE, True, *scheduled
        )
        scheduled[:] = scheduled if scheduled[0] is not None else plan

    if not shape.topk and shape.row != "bf16_576":
        return _dense_e4m3(inputs, lengths)
    run = sparse if shape.topk else dense
    return [lambda i=i: run(i) for i in range(inputs.sets)], found


def _dense_e4m3(inputs: Inputs, lengths: torch.Tensor) -> tuple[Calls, list[torch.Tensor]]:
    """Its calls of e4m3 queries and rows, each with one scale; the queries' is as large as fits."""
    shape, found = inputs.shape, [torch.empty(0)] * inputs.sets
    of_q = inputs.q.abs().max().float() / 448
    q = (inputs.q.float() / of_q).to(torch.float8_e4m3fn)
    q = q.view(inputs.sets, shape.batch, shape.new, shape.h, DEPTH)
    cache = inputs.blocks.view(torch.float8_e4m3fn)[:, :, None]
    plan = torch.ops.sgl_kernel.get_mla_decoding_metadata_dense_fp8.default(
        lengths, shape.new * shape.h, 1
    )
    scales = (of_q.reshape(1), torch.ones(1, device="cuda"))

    def run(i: int) -> None:
        found[i], _ = torch.ops.sgl_kernel.fwd_kvcache_mla_fp8.default(
            q[i], cache, LATENT, lengths, inputs.table, SCALE, True, *plan, *scales
        )

    return [lambda i=i: run(i) for i in range(inputs.sets)], found


def _as_656(inputs: Inputs) -> torch.Tensor:
    """The rival's rows: ours, or for bf16 ones those that they become."""
    if inputs.shape.row != "bf16_576":
        return inputs.blocks.view(torch.float8_e4m3fn)[:, :, None]
    groups = inputs.rows[:, :LATENT].view(-1, 4, LATENT // 4).float()
    scales = groups.abs().amax(-1, keepdim=True).clamp_min(1e-4) / 448
    codes = (groups / scales).to(torch.float8_e4m3fn).view(torch.uint8).flatten(1)
    rope = inputs.rows[:, LATENT:].contiguous().view(torch.uint8)
    rows = torch.cat((codes, scales.flatten(1).view(torch.uint8), rope), 1)
    return rows.view(-1, PAGE, 1, 656).view(torch.float8_e4m3fn)


def measure(shape: Shape, library: kernelpack.Library, tried: list[int]) -> dict[str, Any]:
    """One row of the table."""
    inputs = Inputs(shape, library)
    guess = partitions(shape.tokens, shape.h, shape.keys, library.device(0).sm_count)
    by_splits = {n: Ours(inputs, library, n) for n in sorted({guess, *tried})}
    timed = {f"ours {n}": Timed(one.all_calls()) for n, one in by_splits.items()}
    rival_calls, found = flash_mla(inputs)
    times = take_turns({**timed, "flash_mla": Timed(rival_calls)})
    best = min(by_splits, key=lambda n: times[f"ours {n}"])
    theirs = torch.stack(found)[..., : shape.h, :].double().view(by_splits[best].out.shape)
    ours = by_splits[best].out.double()
    difference = check_agree(shape.name, float((ours - theirs).norm() / theirs.norm()))
    return {
        **asdict(shape),
        "name": shape.name,
        "variant": by_splits[best].variant,
        "microseconds": {name: round(time, 2) for name, time in times.items()},
        "splits": {"best": best, "chosen": guess},
        "ratio": round(times["flash_mla"] / times[f"ours {guess}"], 3),
        "difference": difference,
    }


def show(row: dict[str, Any]) -> None:
    times, splits = row["microseconds"], row["splits"]
    ours, least = times[f"ours {splits['chosen']}"], times[f"ours {splits['best']}"]
    goal = ""
    if row["times"]:
        verdict = "pass" if row["ratio"] >= row["times"] else "short"
        goal = f" ({verdict} x{row['times']})"
    if row["passes"]:
        verdict = "pass" if ours <= row["passes"] else "short"
        goal = f" ({verdict} {row['passes']}, aim {row['aims']})"
    print(
        f"{row['name']:36} ours {ours:7.1f} us (splits {splits['chosen']}; best {splits['best']}: "
        f"{least:.1f})  flash_mla {times['flash_mla']:7.1f} us  x{row['ratio']:.3f}{goal}  "
        f"difference {row['difference']:.1e}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--flash-mla", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="", help="shapes whose name holds this")
    parser.add_argument("--splits", default="1,2,4,8,16", help="numbers of splits to time too")
    options = parser.parse_args()
    torch.ops.load_library(options.flash_mla / "flashmla_ops.abi3.so")
    library, rows = kernelpack.load(options.bundle), []
    facts = {"benchmark": "mla_decode_attention", **about_this_run(), "shapes": rows}
    tried = [int(number) for number in options.splits.split(",")]
    for shape in shapes():
        if options.only not in shape.name:
            continue
        rows.append(measure(shape, library, tried))
        show(rows[-1])
        torch.cuda.empty_cache()
        if options.out:  # after each: a rival's fault must not lose the others
            options.out.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
