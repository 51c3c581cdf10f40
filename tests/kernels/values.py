"""A kernel that writes its numbers, so that what reaches it is seen; and its folder."""

from pathlib import Path

from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.render.render import render
from kernelpack.spec.arch import Arch
from tests.kept import ROOT, compiled
from tests.verify.small import written

MANIFEST = """kernel: values
abi: 1
doc: Writes the numbers of a call, one of each type, and doubles rows.
targets: [sm_100a, sm_90a]
sizes:
  m: rows
  k: elements of a row
  dtype: their type
numbers:
  eps: what is written in four types
  alpha: {doc: what rows are multiplied by, default: 2}
axes: {DTYPE: [bf16, fp32]}
for:
  blackwell: {template: values/values.cu.j2}
  hopper: {template: values/values.cu.j2}
arguments:
  y: {dtype: DTYPE, shape: [m, k], access: write}
  taken: {dtype: fp64, shape: [4], access: write}
  x: {dtype: DTYPE, shape: [m, k]}
params:
  - {name: y, pointer: y}
  - {name: taken, pointer: taken}
  - {name: x, pointer: x}
  - {name: n, scalar: u32, value: m * k}
  - {name: in_half, scalar: fp16, value: eps}
  - {name: in_bfloat, scalar: bf16, value: eps}
  - {name: in_float, scalar: fp32, value: eps}
  - {name: in_double, scalar: fp64, value: eps}
  - {name: alpha, scalar: DTYPE, value: alpha}
launch: {grid: ["max(1, cdiv(m * k, 32))", 1, 1], block: [32, 1, 1]}
serves:
  - {when: dtype == DTYPE, reason: x has another type}
cost: m
budget: {registers: 64, shared_bytes: 0}
"""

TEMPLATE = """// {{ variant.id }}
#include <cuda_bf16.h>
#include <cuda_fp16.h>
using Element = {{ DTYPE | c_type }};
extern "C" __global__ void __launch_bounds__(32)
{{ variant.entry }}(Element* y, double* taken, const Element* x, unsigned n, __half in_half,
                    __nv_bfloat16 in_bfloat, float in_float, double in_double, Element alpha) {
    const unsigned i = blockIdx.x * 32 + threadIdx.x;
    if (i == 0) {
        taken[0] = __half2float(in_half);
        taken[1] = __bfloat162float(in_bfloat);
        taken[2] = in_float;
        taken[3] = in_double;
    }
    if (i < n) y[i] = Element(float(x[i]) * float(alpha));
}
"""


def folder(root: Path) -> Path:
    """Write the manifest and the template into a folder of their own."""
    made = root / "values"
    made.mkdir(parents=True)
    (made / "values.yaml").write_text(MANIFEST)
    (made / "values.cu.j2").write_text(TEMPLATE)
    return made


def bundle(root: Path, *targets: str) -> Path:
    """A bundle of the kernel for some targets, its PTX by the compiler beside made-up cubins."""
    manifest = load(folder(root) / "values.yaml")
    variants = expand(manifest, tuple(map(Arch, targets)))
    sources = (render(v, ROOT / "templates", (root / "values",)) for v in variants)
    return written(
        root / "values.kpk",
        [(v, compiled(s, v.arch.name)) for v, s in zip(variants, sources, strict=True)],
    )
