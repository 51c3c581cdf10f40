"""What a build refuses of real kernels: no bundle is written, and the error says what is right."""

import pytest

from kernelpack.build.options import Options, Report
from kernelpack.build.pipeline import build
from tests.machine_code.lint_sources import pair

pytestmark = pytest.mark.toolchain

MANIFEST = """kernel: sample
abi: 1
doc: A kernel with a mistake.
targets: [sm_100a]
sizes: {n: elements}
axes: {THREADS: [512]}
for: {blackwell: {template: sample/kernel.cu.j2}}
arguments:
  out: {dtype: u32, shape: [n], access: write}
params:
  - {name: out, pointer: out}
launch: {grid: [2, 1, 1], block: [THREADS, 1, 1]}
cost: n
budget: {registers: 128, shared_bytes: 1024}
"""

REGISTERS = """
extern "C" __global__ void __launch_bounds__(512) sample(unsigned* out) {
    if (threadIdx.x < 128) asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    else asm volatile("setmaxnreg.inc.sync.aligned.u32 152;");
    out[threadIdx.x] = threadIdx.x;
}
"""


@pytest.fixture
def made(tmp_path):
    """Build one kernel from its text."""
    (tmp_path / "templates" / "sample").mkdir(parents=True)
    (tmp_path / "templates" / "include").mkdir()
    (tmp_path / "sample.yaml").write_text(MANIFEST)

    def make(text: str) -> Report:
        (tmp_path / "templates" / "sample" / "kernel.cu.j2").write_text(
            text.replace("{%", "{ %")
            .replace("sample(", "{{ variant.entry }}(")
            .replace("__launch_bounds__(128)", "__launch_bounds__(512)")
        )
        options = Options(
            manifests=(tmp_path / "sample.yaml",),
            templates=tmp_path / "templates",
            output=tmp_path / "x.kpk",
            cache_dir=tmp_path / "cache",
            jobs=1,
        )
        return build(options)

    return make


MEETS = 'asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;");'
MISTAKES = {
    "dropped setmaxnreg": (REGISTERS, "(C7508)", "give the kernel both launch bounds"),
    "a pair that never met": (pair("", MEETS), "[pair-before-peer;", "meet first"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused(made, name):
    """The variant fails with the message and the hint, and there is no bundle."""
    text, what, hint = MISTAKES[name]
    report = made(text)
    error = report.failures[0].error
    assert what in error.what
    assert error.hint.startswith(hint)
    assert not report.bundle.exists()


def test_twins_are_built(made):
    """Both bounds, or both barriers, and there is a bundle."""
    assert not made(REGISTERS.replace("(512)", "(512, 1)")).failures
    assert not made(pair(MEETS, MEETS)).failures
