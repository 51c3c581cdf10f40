"""Built kernels on the emulator: which variants to run, and what is wrong with a run."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from numpy.typing import NDArray

from kernelpack import ops
from kernelpack.bundle.reader import Bundle
from kernelpack.emulator.call import call
from kernelpack.emulator.ptx.parser import parse
from kernelpack.kernels.definition import Arrays, Case
from kernelpack.ops.emulated import check_arrays
from kernelpack.spec.artifact import digest
from kernelpack.spec.variant import Variant
from kernelpack.verify.key import code_of, variant_digest
from kernelpack.verify.outcome import Outcome
from kernelpack.verify.plan import Planner
from tests.kept import computed, proven


def complaints(
    bundle: Bundle,
    planner: Planner,
    variant_id: str,
    turn: int | None = None,
    suits: Callable[[Case], bool] = lambda _: True,
) -> list[str]:
    """What is wrong with each run of a variant; nothing where all are right.

    With a turn these are its first run and one of the others that suit, which turns number through.
    """
    variant = bundle.variant(variant_id)
    ptx = bundle.ptx(bundle.find(variant_id).ptx_digest).text
    jobs = planner.jobs(lambda other: other == variant_id)
    if turn is not None:
        others = [job for job in jobs[1:] if suits(job.case)]
        jobs = (jobs[0], *(others[turn % len(others)] for _ in others[:1]))
    outcomes = [proven(job, variant, ptx, planner.definition) for job in jobs]
    return [f"{o.job.words}: {o.state}\n{o.words}" for o in outcomes if not o.is_right]


def outputs_of(bundle: Bundle, begin: str, case: Case, arrays: Arrays) -> Arrays:
    """What the variant whose id begins so makes of a case; a finding is an error."""
    (record,) = (r for r in bundle.records() if r.id.startswith(begin))
    variant, text = bundle.variant(record.id), bundle.ptx(record.ptx_digest).text
    sizes = case.sizes | {"sm_count": 2}

    def run() -> Arrays:
        called = call(program(text), variant, sizes, arrays)
        called.result.raise_on_error()
        assert not called.result.findings
        return called.outputs

    return computed(parts_of(text, variant, sizes, arrays), run)


program = lru_cache(maxsize=4)(parse)
"""The PTX of a variant, parsed: cases of one follow each other."""


def parts_of(
    text: str, variant: Variant, sizes: Mapping[str, float], arrays: Arrays, how: str = ""
) -> list[tuple[str, str]]:
    """What a run depends on, beside the emulator; `how` says how it is run."""
    described = {name: (a.dtype.name, a.shape, digest(a.tobytes())) for name, a in arrays.items()}
    return [
        ("ptx", code_of(text)),
        ("variant", variant_digest(variant)),
        ("sizes", str(sizes)),
        ("arrays", str(described)),
        ("how", how),
    ]


class KeptLibrary(ops.EmulatedLibrary):
    """The emulated kernels of a bundle; what a right launch makes of its arrays is kept."""

    def run(
        self, kernel: str, sizes: Mapping[str, float], arrays: Arrays, abis: range
    ) -> dict[str, NDArray[Any]]:
        """The outputs by argument name."""
        variant = self.select(kernel, sizes, abis)
        device = {**sizes, "sm_count": self.multiprocessors(variant.arch)}
        check_arrays(variant, device, arrays)
        how = f"{self.schedule} {self.seed} {self.level} {sorted(abis)}"
        parts = parts_of(self.ptx(variant).text, variant, device, arrays, how)
        found = computed(parts, lambda: super(KeptLibrary, self).run(kernel, sizes, arrays, abis))
        return {name: array.copy() for name, array in found.items()}


def prove_one(
    bundle: Bundle, planner: Planner, begin: str, case: str, change: Callable[[Variant], Variant]
) -> Outcome:
    """The run of one case by the variant whose id begins so, changed."""
    (record,) = (r for r in bundle.records() if r.id.startswith(begin))
    jobs = planner.jobs(lambda other: other == record.id)
    (job,) = (job for job in jobs if job.case.name == case)
    ptx = bundle.ptx(record.ptx_digest).text
    return proven(job, change(bundle.variant(record.id)), ptx, planner.definition)
