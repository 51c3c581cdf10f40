"""The folder of a kernel of one's own: the small one of tests/verify, with an oracle in a file."""

from pathlib import Path

ORACLE = """
import numpy as np

from kernelpack.oracle import Expected, every, exactly, normal, within

CASES = every(n=(5, 40, 64))
LARGE = every(n=500)


def inputs(sizes, random):
    return {"x": normal(random, sizes.n, "fp32")}


def expected(sizes, arrays):
    return {"y": within(2 * arrays["x"].astype(np.float64), "fp32", ulps=1)}
"""

MANIFEST = """kernel: twice
abi: 1
doc: Doubles every element of an array.
targets: [sm_100a]
sizes: {n: elements}
axes: {TILE: [32]}
for: {blackwell: {template: twice/twice.cu.j2}}
arguments:
  y: {dtype: fp32, shape: [n], access: write}
  x: {dtype: fp32, shape: [n]}
params:
  - {name: y, pointer: y}
  - {name: x, pointer: x}
  - {name: n, scalar: u32, value: n}
launch: {grid: ["cdiv(n, TILE)", 1, 1], block: [TILE, 1, 1]}
serves:
  - {when: n > 0, reason: there is nothing to double}
cost: n
budget: {registers: 64, shared_bytes: 0}
"""

TEMPLATE = """// {{ variant.id }}
extern "C" __global__ void __launch_bounds__({{ TILE }})
{{ variant.entry }}(float* y, const float* x, unsigned n) {
    const unsigned i = blockIdx.x * {{ TILE }} + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
"""


def own(root: Path, oracle: str | None = ORACLE, stem: str = "twice") -> Path:
    """Write the folder; without an oracle if there is no text of one."""
    folder = root / stem
    folder.mkdir(parents=True)
    (folder / f"{stem}.yaml").write_text(MANIFEST.replace("twice", stem))
    (folder / f"{stem}.cu.j2").write_text(TEMPLATE)
    if oracle is not None:
        (folder / f"{stem}.py").write_text(oracle)
    return folder
