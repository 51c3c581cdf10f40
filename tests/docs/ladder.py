"""The kernels of examples/ladder as tests see them: rendered, changed, compiled, run."""

from dataclasses import replace
from functools import cache

from kernelpack.kernels.definition import Definition
from kernelpack.kernels.folder import folders
from kernelpack.kernels.registry import known
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.render.render import render
from kernelpack.spec.variant import Variant
from kernelpack.verify.job import Job
from kernelpack.verify.outcome import Outcome
from tests.kept import ROOT, compiled, proven

LADDER = ROOT / "examples" / "ladder"
STEPS = tuple(folder.stem for folder in folders([LADDER]))
TARGETS = ("sm_90a", "sm_100a")


@cache
def definition(step: str) -> Definition:
    """A step's oracle."""
    return known((LADDER / step,))[step]


@cache
def variant(step: str, target: str) -> Variant:
    """The one variant of a step for a target."""
    (found,) = [v for v in expand(load(LADDER / step / f"{step}.yaml")) if v.arch.name == target]
    return found


def outcome(
    step: str, target: str, schedule: str, *, case: int = 0, old: str = "", new: str = ""
) -> Outcome:
    """What comes of a case under an interleaving, with `new` where the template has `old`."""
    made, of = variant(step, target), definition(step)
    source = render(made, ROOT / "templates", [LADDER / step])
    assert old in source.text, f"`{old}` is not in {source.name}"
    text = source.text.replace(old, new) if old else source.text
    ptx = compiled(replace(source, text=text), target)
    problem = of.cases()[case]
    job = Job(variant_id=made.id, kernel=step, case=problem, sm_count=2, schedule=schedule)
    return proven(job, made, ptx.text, of)


def change(diff: str) -> tuple[str, str]:
    """What a diff takes away, and what it puts there."""
    lines = diff.splitlines(keepends=True)
    old, new = ("".join(line[1:] for line in lines if line[0] == sign) for sign in "-+")
    return old, new
