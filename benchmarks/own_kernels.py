"""The kernels of examples/kernels beside torch's own operations, on a Hopper or Blackwell GPU.

    kernelpack build examples/kernels/rms_norm examples/kernels/silu_mul_fp8 -o own.kpk
    python benchmarks/own_kernels.py --bundle own.kpk [--out FILE]

`of_copy` is the rate of a kernel, bytes read and written, over that of the best device copy; the
workspace of silu_mul_fp8 is not counted. torch is eager: `rms_norm` is one call of it, silu, times,
largest, divide and round are six.
"""

import sys
from dataclasses import asdict, dataclass
from typing import Any

import torch
from shapes import measure_shapes
from timing import Calls, Timed, check_agree, sets_of, take_turns
from torch.nn import functional

import kernelpack

EPS = 1e-6
BF16, FP16, E4M3 = torch.bfloat16, torch.float16, torch.float8_e4m3fn


@dataclass(frozen=True)
class RmsNorm:
    """Rows of a width."""

    rows: int
    width: int
    dtype: str = "bfloat16"

    @property
    def bytes(self) -> int:
        """The bytes that one call must read and write."""
        return 2 * self.width * (2 * self.rows + 1)

    def rivals(self, library: kernelpack.Library) -> tuple[dict[str, Calls], float]:
        """Both as calls, one a set of inputs, and how far the outputs are apart."""
        kind = {"device": "cuda", "dtype": getattr(torch, self.dtype)}
        x = torch.randn(sets_of(self.bytes), self.rows, self.width, **kind)
        w, out = torch.randn(self.width, **kind), torch.empty_like(x)
        ours = [
            library.prepare("rms_norm", x=a, w=w, eps=EPS, out=y)
            for a, y in zip(x, out, strict=True)
        ]
        calls = {
            "ours": started(ours),
            "torch": [lambda a=a: functional.rms_norm(a, (self.width,), w, EPS) for a in x],
        }
        calls["ours"][0]()
        return calls, apart(out[0], calls["torch"][0]())


@dataclass(frozen=True)
class SiluMul:
    """Rows of two halves of a width."""

    rows: int
    width: int

    @property
    def bytes(self) -> int:
        """The bytes that one call must read and write, without the workspace."""
        return self.rows * (5 * self.width + 4)

    def rivals(self, library: kernelpack.Library) -> tuple[dict[str, Calls], float]:
        """Both as calls, one a set of inputs, and how far the outputs are apart."""
        sets = sets_of(self.bytes)
        x = torch.randn(sets, self.rows, 2 * self.width, device="cuda", dtype=BF16)
        q = torch.empty(sets, self.rows, self.width, device="cuda", dtype=E4M3)
        scale = [torch.empty(self.rows, device="cuda") for _ in range(sets)]
        memory = torch.empty(self.rows, self.width, device="cuda")
        ours = [
            library.prepare("silu_mul_fp8", x=x[i], q=q[i], scale=scale[i], workspace=memory)
            for i in range(sets)
        ]
        calls = {"ours": started(ours), "torch": [lambda a=a: quantised(a) for a in x]}
        calls["ours"][0]()
        codes, steps = quantised(x[0])
        return calls, apart(q[0].float() * scale[0][:, None], codes.float() * steps)


def quantised(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The same by torch's operations: codes and the scale of each row."""
    gate, up = x.chunk(2, dim=-1)
    values = functional.silu(gate.float()) * up.float()
    scale = values.abs().amax(dim=-1, keepdim=True) / 448
    return (values / scale).to(E4M3), scale


def apart(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """How far outputs are apart, over their size."""
    difference = (ours.double() - theirs.double()).norm()
    return float(difference / theirs.double().norm())


def started(prepared: list[Any]) -> Calls:
    """Prepared launches as calls on torch's stream."""
    print(prepared[0].variant.id, file=sys.stderr)
    return [lambda p=p: p(torch.cuda.current_stream().cuda_stream) for p in prepared]


Shape = RmsNorm | SiluMul
SHAPES: tuple[Shape, ...] = (
    *(RmsNorm(rows, width) for width in (1024, 4096, 7168) for rows in (1, 64, 1024, 16384)),
    RmsNorm(16384, 4096, "float16"),
    *(SiluMul(rows, width) for width in (2048, 14336) for rows in (1, 64, 1024, 8192)),
)


def measure(shape: Shape, library: kernelpack.Library, rate: float) -> dict[str, Any]:
    """One row of the table."""
    calls, difference = shape.rivals(library)
    difference = check_agree(str(shape), difference)
    times = take_turns({name: Timed(one) for name, one in calls.items()})
    return {
        "kernel": "rms_norm" if isinstance(shape, RmsNorm) else "silu_mul_fp8",
        **asdict(shape),
        "bytes": shape.bytes,
        "difference": round(difference, 6),
        "microseconds": {name: round(time, 2) for name, time in times.items()},
        "times_faster": round(times["torch"] / times["ours"], 2),
        "of_copy": round(shape.bytes / times["ours"] / rate, 3),
    }


if __name__ == "__main__":
    measure_shapes("own_kernels", __doc__, SHAPES, measure)
