"""`kernelpack run`: a kernel on this machine's GPU, held against the float64 oracle."""

from math import isfinite
from pathlib import Path

import rich_click as click

from kernelpack.cli import choices, console
from kernelpack.errors import ProblemError
from kernelpack.kernels.registry import find
from kernelpack.load.load import load
from kernelpack.ops.trial import Comparison, Trial


@click.command("run")
@click.argument("kernel")
@click.argument("sizes", nargs=-1, metavar="[NAME=VALUE]...")
@click.option(
    "--bundle",
    type=click.Path(path_type=Path),
    help="The bundle; if left out, that of KERNELPACK_BUNDLE, else the installed one.",
)
@click.option("--device", type=click.IntRange(0), default=0, show_default=True, help="The GPU.")
@choices.as_json
def command(
    kernel: str, sizes: tuple[str, ...], bundle: Path | None, device: int, as_json: bool
) -> int:
    """Run a kernel on the GPU and compare it with the float64 oracle.

    Sizes are given as `m=4096 k=7168`; those left out have defaults. Prints the device, the
    variant that was selected, the time of a launch with warm caches, and the worst error of each
    output. Exits with 1 where an output is wrong.
    """
    definition = find(kernel)
    case = definition.case(dict(pair(text) for text in sizes))
    library = load(choices.bundle_path(bundle))
    trial = Trial(library, definition, case, device)
    variant = trial.select()
    outputs = trial.check(variant)
    facts: dict[str, object] = {
        "device": str(library.device(device)),
        "problem": case.name,
        "variant": variant.id,
        "microseconds": round(trial.time(variant), 2),
    }
    if as_json:
        console.print_json(facts | {"outputs": [_record(output) for output in outputs]})
    else:
        console.print_facts(facts | {output.name: _words(output) for output in outputs})
    return 0 if all(output.is_right for output in outputs) else 1


def pair(text: str) -> tuple[str, str]:
    """`name=value` → (name, value).

    Raises:
        ProblemError: there is no `=`.

    """
    name, equals, value = text.partition("=")
    if not equals:
        raise ProblemError(f"`{text}` is not a size", hint="sizes are given as `m=4096`")
    return name, value


def _record(output: Comparison) -> dict[str, object]:
    return {
        "name": output.name,
        "right": output.is_right,
        "worst_error": _finite(output.error),
        "worst_error_over_bound": _finite(output.ratio),
    }


def _finite(number: float) -> float | None:
    """JSON has no word for NaN and infinity."""
    return number if isfinite(number) else None


def _words(output: Comparison) -> str:
    verdict = "right" if output.is_right else f"WRONG: {output}"
    return f"{verdict}; worst error {output.error:.3g}, {output.ratio:.2f} of the bound"
