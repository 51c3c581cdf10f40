"""`kernelpack run` without a GPU: the same kernel on the CPU emulator."""

from math import isfinite

from kernelpack.cli import console
from kernelpack.kernels.definition import Case, Definition
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.spec.launch import is_absent, resolve
from kernelpack.spec.variant import Variant
from kernelpack.verify import room
from kernelpack.verify.job import Job
from kernelpack.verify.outcome import Outcome
from kernelpack.verify.prove import prove


def run_emulated(
    library: EmulatedLibrary, definition: Definition, case: Case, *, as_json: bool
) -> int:
    """Run a case on the emulator and print the result; the exit code.

    Raises:
        SelectionError: no variant serves the case.
        BundleError: the bundle's PTX is missing.
        ProblemError: this machine has no room for the arguments.

    """
    sizes = library.known(definition.stem, case.sizes)
    variant = library.select(definition.stem, sizes, definition.abis)
    sm_count = library.multiprocessors(variant.arch)
    job = Job(
        variant_id=variant.id,
        kernel=definition.stem,
        case=case,
        sm_count=sm_count,
        selected=True,
    )
    room.check_launch(variant, job.sizes, case.name)
    _check_launch(variant, job)
    console.say(f"emulating {variant.id}")
    outcome = prove(job, variant, library.ptx(variant).text, definition)
    facts: dict[str, object] = {
        "device": f"CPU emulator of {variant.arch}, {sm_count} multiprocessors",
        "problem": case.name,
        "variant": variant.id,
        "warp instructions": outcome.steps,
        "seconds": round(outcome.seconds, 2),
    }
    if as_json:
        named = {name.replace(" ", "_"): value for name, value in facts.items()}
        console.print_json(named | _record(outcome))
    else:
        console.print_facts(facts | {c.name: _words(outcome, c.name) for c in outcome.comparisons})
        for complaint in outcome.complaints():
            console.show(complaint)
    return 0 if outcome.is_right else 1


_APART = 1 << 40
"""From one address that is pretended to the next: no argument reaches it."""


def _check_launch(variant: Variant, job: Job) -> None:
    """Refuse a problem without a launch, before anything runs."""
    sizes = {**job.sizes, "sm_count": job.sm_count}
    present = (a.name for a in variant.arguments if not is_absent(a, sizes))
    resolve(variant, sizes, {name: _APART * place for place, name in enumerate(present, 1)})


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
