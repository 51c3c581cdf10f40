"""Sparse MLA's Blackwell kernels on the emulator, beyond what the tests run each time.

A token at full size for each form and kind of rows; every warp held back in turn, on a small case
of each form; rising scores with sums cut as tensor cores cut them; the telling cases of each
variant, eager and lazy. Runs one after the other, writes
benchmarks/results/sparse_mla_emulated.json after each, and goes on where it was stopped.

    .venv/bin/python -m benchmarks.sparse_mla_emulated [full-size] [held-back] [cut] [telling]
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from kernelpack.emulator.call import call
from kernelpack.emulator.ptx.parser import parse
from kernelpack.kernels.sparse_mla_prefill.definition import SPARSE_MLA_PREFILL
from kernelpack.kernels.sparse_mla_prefill.inputs import Case
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.render.render import render
from kernelpack.spec.arch import Arch
from kernelpack.spec.select import judge
from kernelpack.spec.variant import Variant
from kernelpack.toolchain.locate import find
from kernelpack.toolchain.nvrtc import compile_in_process
from kernelpack.verify.compare import compare

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "benchmarks/results/sparse_mla_emulated.json"
ARCH = Arch("sm_100a")
DEVICE = {"sm_count": 148}
WHAT = "sparse MLA's sm_100a variants on the emulator; `worst`: errors over their bounds"
SMALL = "topk_300"
"""A token of 24 heads over three blocks of keys: rings of two turn."""
FORMS = ("bf16_576 heads=128", "fp8_640 heads=128", "bf16_576 heads=64", "fp8_640 heads=64",
         "fp8_656 heads=64")  # fmt: skip
"""A variant of each template: rows and heads of its tile."""


@dataclass(frozen=True, slots=True)
class Run:
    """One emulation: of which part of the record, a variant, a case and a schedule.

    `exact`: sums are cut as tensor cores cut them.
    """

    part: str
    variant: Variant
    case: Case
    schedule: str
    exact: bool = False

    @property
    def words(self) -> str:
        """Its name in the record."""
        return f"{self.part}: {self.variant.id} {self.case.name} {self.schedule}"


def served(variant: Variant, case: Case) -> bool:
    """Whether a variant takes a case; of e4m3 rows it may take those with scales and without."""
    return judge(variant, case.sizes | DEVICE, (10, 0)).cost is not None


def form(variant: Variant) -> str:
    """What of `FORMS` a variant is like."""
    axes = dict(variant.axes)
    return f"{axes['ROW']} heads={axes['HEADS']}"


def planned() -> Iterator[Run]:
    """Every run, the longest part last."""
    ours = expand(load(ROOT / "manifests/sparse_mla_prefill.yaml"), [ARCH])
    every, telling = SPARSE_MLA_PREFILL.cases(), SPARSE_MLA_PREFILL.telling()
    for variant in ours:
        if dict(variant.axes)["SCALE_BLOCK"] in (64, 128):
            continue  # a constant apart from 32
        full = [c for c in every if c.name.endswith("full_size") and served(variant, c)]
        yield from (Run("full-size", variant, case, "eager") for case in full[-1:])
    for variant in ours:
        if form(variant) in FORMS and dict(variant.axes)["QUERY"] == "bf16":
            (case,) = [c for c in every if c.name.endswith(SMALL) and served(variant, c)][-1:]
            yield from (Run("held-back", variant, case, s) for s in held_back(variant))
    for variant in ours:
        if form(variant) in FORMS and dict(variant.axes)["QUERY"] == "bf16":
            (case,) = [c for c in telling if c.name.endswith("rising") and served(variant, c)][-1:]
            yield Run("cut", variant, case, "eager", exact=True)
    for variant in ours:
        listed = [c for c in telling if served(variant, c)]
        for case in listed:
            yield from (Run("telling", variant, case, s) for s in ("eager", "lazy"))


def held_back(variant: Variant) -> list[str]:
    """A schedule for each warp of a token's CTAs."""
    constants = dict(variant.constants)
    warps, ctas = int(constants["THREADS"]) // 32, int(constants["CTAS"])
    return [f"starving:{rank}:{warp}" for rank in range(ctas) for warp in range(warps)]


def emulated(run: Run, programs: dict[str, object]) -> dict[str, object]:
    """What came of a run: the worst error of each output over its bound, findings, the effort."""
    key = run.variant.id
    if key not in programs:
        programs.clear()
        source = render(run.variant, ROOT / "templates")
        programs[key] = parse(compile_in_process(source, find(), ARCH).text)
    began, arrays = process_time(), SPARSE_MLA_PREFILL.inputs(run.case)
    sizes = run.case.sizes | DEVICE
    called = call(programs[key], run.variant, sizes, arrays, schedule=run.schedule, exact=run.exact)
    result, expected = called.result, SPARSE_MLA_PREFILL.expected(run.case, arrays)
    compared = [compare(n, a, expected[n].on(ARCH)) for n, a in called.outputs.items()]
    wrong = [str(x) for x in (result.error, *result.findings) if x is not None]
    wrong += [str(c) for c in compared if not c.is_right]
    return {
        "right": not wrong,
        "worst": {c.name: round(c.worst.ratio, 3) for c in compared},
        "warp_instructions": result.steps,
        "processor_seconds": round(process_time() - began, 1),
        **({"wrong": wrong} if wrong else {}),
    }


def main(parts: list[str]) -> None:
    """Run what is not recorded yet."""
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {"what": WHAT, "runs": {}}
    programs: dict[str, object] = {}
    for run in planned():
        if (parts and run.part not in parts) or run.words in record["runs"]:
            continue
        record["runs"][run.words] = found = emulated(run, programs)
        print(run.words, found, flush=True)
        RECORD.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
