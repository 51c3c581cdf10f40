"""`kernelpack run`: a kernel on this machine, checked against the float64 oracle.

On its GPU; where there is none, on the CPU emulator.
"""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path

import rich_click as click

from kernelpack.cli import choices, complete, console
from kernelpack.errors import DriverError, ProblemError
from kernelpack.kernels.definition import Definition
from kernelpack.kernels.registry import known
from kernelpack.load.library import Library
from kernelpack.load.load import load
from kernelpack.ops.trial import Comparison, Trial

GPU, EMULATOR = "gpu", "emulator"
Sizes = dict[str, str]


@click.command(
    "run",
    epilog=choices.examples(
        "kernelpack run lora_shrink_qkv --bundle kernels.kpk m=4096 k=4096 n=16 n_active=8",
        "kernelpack run lora_shrink_qkv --bundle kernels.kpk --on emulator",
        "kernelpack run rms_norm --kernels rms_norm --bundle rms_norm.kpk rows=3",
    ),
)
@click.argument("kernel", shell_complete=complete.kernels)
@click.argument("sizes", nargs=-1, metavar="[NAME=VALUE]...")
@click.option(
    "--bundle",
    type=choices.SomePath(path_type=Path),
    help="The bundle; if left out, that of KERNELPACK_BUNDLE, else the installed one.",
)
@click.option(
    "--on",
    type=click.Choice([GPU, EMULATOR]),
    help="Where; if left out, the GPU if there is one, else the CPU emulator.",
)
@click.option(
    "--arch",
    type=choices.TargetName(),
    help="On the emulator: the target whose kernels run; if left out, the first of these that the "
    "bundle has.",
)
@choices.kernels
@choices.tuned
@click.option("--device", type=click.IntRange(0), default=0, show_default=True, help="The GPU.")
@choices.as_json
def command(
    kernel: str,
    sizes: tuple[str, ...],
    bundle: Path | None,
    on: str | None,
    arch: str | None,
    kernels: tuple[Path, ...],
    tuned: Path | None,
    device: int,
    as_json: bool,
) -> int:
    """Run a kernel and compare it with the float64 oracle.

    Sizes are given as `m=4096 k=7168`; those left out have defaults, smaller ones on the emulator.
    Prints where it ran, the variant that was selected, the time of a launch with warm caches (of
    the emulator: warp instructions), and the worst error of each output. The emulator runs the
    PTX, X.ptx.kpk beside the bundle, and also says which rules were broken. A kernel
    of your own is found in the folder that `--kernels` names. Exits with 1 where anything is wrong.
    """
    if arch and on == GPU:
        raise click.UsageError("--arch is for the emulator; a GPU runs what it is")
    definition = known(kernels).find(kernel)
    given = pairs(sizes)
    definition.case(given)
    path = choices.bundle_path(bundle)
    library = None if arch or on == EMULATOR else _on_gpu(path, tuned, device, must=on == GPU)
    if library is None:
        return _emulate(definition, given, path, arch, tuned, as_json=as_json)
    return _launch(library, definition, given, device, as_json=as_json)


def _on_gpu(path: Path | None, tuned: Path | None, device: int, *, must: bool) -> Library | None:
    """The kernels on a GPU; None where there is no GPU, and that may be.

    Raises:
        DriverError: there is none, and it must be.

    """
    try:
        library = load(path, tuned=tuned)
        library.device(device)
    except DriverError as error:
        if must:
            raise
        console.say(f"there is no GPU to run on, so the CPU emulator does: {error.what}")
        return None
    return library


def _launch(
    library: Library, definition: Definition, given: Sizes, device: int, *, as_json: bool
) -> int:
    case = definition.case(given)
    trial = Trial(library, definition, case, device)
    variant = trial.select()
    outputs, written = trial.check(variant), trial.disturbed()
    facts: dict[str, object] = {
        "device": str(library.device(device)),
        "problem": case.name,
        "variant": variant.id,
        "microseconds": round(trial.time(variant), 2),
    }
    if as_json:
        found = {"outputs": [_record(output) for output in outputs], "inputs_written": written}
        console.print_json(facts | found)
    else:
        told = {output.name: _words(output) for output in outputs}
        told |= dict.fromkeys(written, "WRONG: it is an input, and was written")
        console.print_facts(facts | told)
    return 0 if all(output.is_right for output in outputs) and not written else 1


def _emulate(
    definition: Definition,
    given: Sizes,
    path: Path | None,
    arch: str | None,
    tuned: Path | None,
    *,
    as_json: bool,
) -> int:
    from kernelpack.cli.emulated import run_emulated  # noqa: PLC0415 - a GPU needs no emulator
    from kernelpack.ops.emulated import EmulatedLibrary  # noqa: PLC0415

    case = definition.case({**definition.emulated, **given})
    library = EmulatedLibrary(path, arch=arch, tuned=tuned)
    return run_emulated(library, definition, case, as_json=as_json)


def pairs(texts: Sequence[str]) -> Sizes:
    """`name=value` … → sizes by name.

    Raises:
        ProblemError: there is no `=`, or a name comes twice.

    """
    sizes: Sizes = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ProblemError(f"`{text}` is not a size", hint="sizes are given as `m=4096`")
        if name in sizes:
            raise ProblemError(f"`{name}` is given twice: {sizes[name]} and {value}")
        sizes[name] = value
    return sizes


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
