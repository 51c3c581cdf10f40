"""`kernelpack tune`: the variants that may serve, timed on this machine's GPU for its choices."""

from functools import partial
from pathlib import Path

import rich_click as click

from kernelpack.cli import choices, complete, console
from kernelpack.cli.progress import watch
from kernelpack.cli.run import pairs
from kernelpack.device.apart import LostError, apart, surviving
from kernelpack.device.machine import beside, device_of
from kernelpack.device.tune import Asked, Tuned, tune
from kernelpack.errors import ProblemError
from kernelpack.kernels.definition import Case, Definition
from kernelpack.kernels.registry import known
from kernelpack.load.load import load
from kernelpack.runtime.driver import connect
from kernelpack.spec.counted import counted


@click.command(
    "tune",
    epilog=choices.examples(
        "kernelpack tune kernels.kpk lora_shrink_qkv m=4096 k=7168 n=64 n_active=8",
        "kernelpack tune kernels.kpk nvfp4_grouped_gemm --shapes shapes.txt -o tuned.json",
    ),
)
@choices.bundle
@click.argument("kernel", shell_complete=complete.kernels)
@click.argument("sizes", nargs=-1, metavar="[NAME=VALUE]...")
@click.option(
    "--shapes",
    type=choices.SomePath(path_type=Path, dir_okay=False),
    help="A file of problems, a line each: `m=4096 k=7168`; `#` begins a comment.",
)
@click.option(
    "-o",
    "--output",
    type=choices.SomePath(path_type=Path, dir_okay=False),
    help="The overlay, which is added to; X.tuned.DEVICE.json beside the bundle if left out.",
)
@choices.kernels
@click.option("--device", type=click.IntRange(0), default=0, show_default=True, help="The GPU.")
@choices.as_json
def command(
    bundle: Path,
    kernel: str,
    sizes: tuple[str, ...],
    shapes: Path | None,
    output: Path | None,
    kernels: tuple[Path, ...],
    device: int,
    as_json: bool,
) -> int:
    """Time the variants that may serve, on this machine's GPU, for its choices.

    Writes the times into an overlay, which `kernelpack.load(bundle, tuned=FILE)` and the C++ loader
    take in place of the manifest's costs: a problem that was measured takes what was fastest, and
    one between two takes what both agree on (ADR 0036). An overlay is of one kind of device
    and of exactly these kernels; others refuse it. Problems that it has already are not measured
    again. Prints what the manifest's costs choose, what was fastest, and by how much.
    """
    definition = known(kernels).find(kernel)
    cases = _cases(definition, sizes, shapes)
    driver = connect()
    path = output or beside(bundle, "tuned", device_of(driver, device))
    choices.check_written(path, read=[bundle])
    load(bundle, driver=driver)  # refuses a driver that is too old, before work is begun
    asked = Asked(
        bundle=bundle,
        kernel=kernel,
        kernels=kernels,
        cases=tuple(cases),
        device=device,
        output=path,
    )
    found, lost = [], list[LostError]()
    with watch() as progress:
        progress.begin(len(cases))
        for tuned in surviving(partial(tune, asked, connect), lost.append, apart):
            found.append(tuned)
            progress.tell(tuned)
    console.say(f"wrote {path}")
    _tell(found, as_json=as_json)
    return console.exit_code(lost)


def _cases(definition: Definition, sizes: tuple[str, ...], shapes: Path | None) -> list[Case]:
    """The problems asked for, each once.

    Raises:
        ProblemError: a line of the file is not a problem of the kernel.

    """
    found = [] if shapes and not sizes else [definition.case(pairs(sizes))]
    lines = shapes.read_text(encoding="utf-8").splitlines() if shapes else []
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if words:
            found.append(_case(definition, words, f"{shapes}:{number}"))
    if not found:
        raise ProblemError("holds no problem", where=str(shapes), hint="a line is `m=4096 k=7168`")
    return list({tuple(case.sizes.items()): case for case in found}.values())


def _case(definition: Definition, words: list[str], where: str) -> Case:
    try:
        case: Case = definition.case(pairs(words))
    except ProblemError as error:
        raise ProblemError(str(error), where=where) from error
    return case


def _tell(found: list[Tuned], *, as_json: bool) -> None:
    if as_json:
        console.print_json([_record(tuned) for tuned in found])
        return
    for tuned in found:
        console.show(_line(tuned))
    better = [tuned for tuned in found if tuned.variant_id != tuned.usual]
    product = 1.0
    for tuned in found:
        product *= tuned.gain
    mean = product ** (1 / len(found))
    console.show(
        f"{counted(len(found), 'problem')}, {len(better)} with another choice; "
        f"x{mean:.3f} in the geometric mean"
    )


def _line(tuned: Tuned) -> str:
    sizes = " ".join(f"{name}={size}" for name, size in tuned.case.sizes.items())
    usual, best = tuned.times.get(tuned.usual), tuned.times[tuned.variant_id]
    before = "lost" if usual is None else f"{usual:.2f}"
    same = tuned.variant_id == tuned.usual
    other = "" if same else f" instead of {tuned.usual}"
    return f"{before:>9} -> {best:9.2f} us  x{tuned.gain:.3f}  {sizes}: {tuned.variant_id}{other}"


def _record(tuned: Tuned) -> dict[str, object]:
    return {
        "sizes": tuned.case.sizes,
        "manifest": tuned.usual,
        "tuned": tuned.variant_id,
        "microseconds": {one: round(time, 3) for one, time in tuned.times.items()},
        "gain": round(tuned.gain, 4),
        "measured_now": tuned.is_new,
    }
