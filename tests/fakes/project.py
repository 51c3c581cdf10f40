"""A small project to build: one kernel in three sizes, two headers, and made-up compilers.

Size 1 includes <kp/one.cuh>, all sizes include <kp/all.cuh>.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelpack.build.options import Options, Report
from kernelpack.build.pipeline import build
from kernelpack.build.steps import Steps
from kernelpack.workers.pool import run_here
from tests.fakes import compilers

TEMPLATE = """// {{ variant.id }}
#include <kp/all.cuh>
{% if SIZE == 1 %}
#include <kp/one.cuh>
{% endif %}
extern "C" __global__ void {{ variant.entry }}(float* out, unsigned n) {}
"""

MANIFEST = """kernel: fill
abi: 1
doc: Fills an array.
targets: [sm_90a]
sizes:
  n: elements
axes:
  SIZE: [1, 2, 3]
for: {hopper: {template: fill/kernel.cu.j2}}
arguments:
  out: {dtype: fp32, shape: [n], access: write}
params:
  - {name: out, pointer: out}
  - {name: n, scalar: u32, value: n}
launch: {grid: ["cdiv(n, SIZE)", 1, 1], block: [32, 1, 1]}
serves:
  - {when: n > 0, reason: there is nothing to fill}
cost: n
budget: {registers: 64, shared_bytes: 0}
"""

ENTRIES = ["fill_1", "fill_2", "fill_3"]


@dataclass(frozen=True)
class Project:
    """A folder with a manifest, templates, a cache, a log of compiler calls, and an output."""

    root: Path

    @property
    def output(self) -> Path:
        return self.root / "out" / "fill.kpk"

    @property
    def log(self) -> Path:
        return self.root / "log"

    @property
    def template(self) -> Path:
        return self.root / "templates" / "fill" / "kernel.cu.j2"

    @property
    def manifest(self) -> Path:
        return self.root / "fill.yaml"

    def header(self, name: str) -> Path:
        return self.root / "templates" / "include" / "kp" / f"{name}.cuh"

    def options(self, **changes: Any) -> Options:
        asked: dict[str, Any] = {
            "manifests": (self.manifest,),
            "templates": self.root / "templates",
            "output": self.output,
            "cache_dir": self.root / "cache",
            "jobs": 2,
        }
        return Options(**asked | changes)

    def steps(self, **changes: Any) -> Steps:
        found = compilers.toolchain(self.log)
        given: dict[str, Any] = {
            "find": lambda *_, **__: found,
            "compilers": compilers.COMPILERS,
            "run": run_here,
            "disassembler": lambda: None,
        }
        return Steps(**given | changes)

    def build(self, **changes: Any) -> Report:
        return build(self.options(**changes), steps=self.steps())

    def compiled(self) -> list[str]:
        """The entries that the front end was called for since the last time this was asked."""
        found = compilers.calls(self.log, "compile")
        for path in self.log.glob("*"):
            path.unlink()
        return found

    def order(self, size: int, order: str) -> None:
        """Give the compilers an order for one size."""
        self.template.write_text(f"{TEMPLATE}{{% if SIZE == {size} %}}// {order}\n{{% endif %}}")


def make_project(root: Path) -> Project:
    project = Project(root)
    for path, text in (
        (project.manifest, MANIFEST),
        (project.template, TEMPLATE),
        (project.header("all"), "// all\n"),
        (project.header("one"), "// one\n"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return project
