"""What `kernelpack run` does where there is no GPU: the same kernel on the CPU emulator."""

from math import isfinite

from kernelpack.cli import console
from kernelpack.kernels.definition import Case, Definition
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.verify.job import Job
from kernelpack.verify.outcome import Outcome
from kernelpack.verify.prove import prove


def run_emulated(
    library: EmulatedLibrary, definition: Definition, case: Case, *, as_json: bool
) -> int:
    """Run a case on the emulator and tell what came of it; the exit code.

    Raises:
        SelectionError: no variant serves the case.
        BundleError: the bundle's PTX is missing.

    """
    variant = library.select(definition.stem, case.sizes, definition.abis)
    sm_count = library.multiprocessors(variant.arch)
    job = Job(
        variant_id=variant.id,
        kernel=definition.stem,
        case=case,
        sm_count=sm_count,
        selected=True,
    )
    outcome = prove(job, variant, library.ptx(variant).text, definition)
    facts: dict[str, object] = {
        "device": f"CPU emulator of {variant.arch}, {sm_count} multiprocessors",
        "problem": case.name,
        "variant": variant.id,
        "warp instructions": outcome.steps,
        "seconds": round(outcome.seconds, 2),
    }
    if as_json:
        console.print_json(facts | _record(outcome))
    else:
        console.print_facts(facts | {c.name: _words(outcome, c.name) for c in outcome.comparisons})
        for complaint in outcome.complaints():
            print(complaint)
    return 0 if outcome.is_right else 1


def _words(outcome: Outcome, name: str) -> str:
    (found,) = (c for c in outcome.comparisons if c.name == name)
    verdict = "right" if found.is_right else "WRONG"
    return f"{verdict}; worst error {found.worst.ratio:.2f} of the bound"


def _record(outcome: Outcome) -> dict[str, object]:
    return {
        "state": str(outcome.state),
        "complaints": list(outcome.complaints()),
        "outputs": [
            {
                "name": c.name,
                "right": c.is_right,
                "worst_error_over_bound": c.worst.ratio if isfinite(c.worst.ratio) else None,
            }
            for c in outcome.comparisons
        ],
    }
