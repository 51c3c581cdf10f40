"""`kernelpack trace`: a launch on the emulator over time, as a trace and as a picture."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import rich_click as click

from kernelpack.bundle.reader import open_entries
from kernelpack.cli import choices, complete, console, pictures
from kernelpack.cli.run import pairs
from kernelpack.emulator.schedule import Schedule
from kernelpack.kernels.definition import Definition
from kernelpack.kernels.registry import known as known_kernels
from kernelpack.verify.timeline.perfetto import trace
from kernelpack.verify.timeline.picture import Caption
from kernelpack.verify.timeline.problem import Problem, known, plain
from kernelpack.verify.timeline.record import Recording, Wish, record

OUTPUT = Path("trace.json")


@click.command(
    "trace",
    epilog=choices.examples(
        "kernelpack trace lora_shrink_qkv --bundle kernels.kpk --svg launch.svg",
        "kernelpack trace lora_shrink_qkv m=64 --bundle kernels.kpk -k sm_90a -o trace.json",
    ),
)
@click.argument("kernel", shell_complete=complete.kernels)
@click.argument("sizes", nargs=-1, metavar="[NAME=VALUE]...")
@click.option(
    "--bundle",
    required=True,
    type=choices.SomePath(path_type=Path, dir_okay=False),
    help="The bundle; its PTX, X.ptx.kpk, lies beside it.",
)
@choices.kernels
@choices.keep
@click.option(
    "--schedule",
    default="fair",
    show_default=True,
    metavar="NAME",
    help="The interleaving: eager, fair, lazy, or starving:RANK:WARP.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of random choices."
)
@click.option(
    "--multiprocessors",
    type=click.IntRange(1),
    help="Of the device, which sizes the grid; a real one's if left out.",
)
@click.option(
    "-o",
    "--output",
    type=choices.SomePath(path_type=Path, dir_okay=False),
    help="The trace, for ui.perfetto.dev; trace.json where no picture is asked for either.",
)
@pictures.options("steps")
@choices.as_json
def command(
    kernel: str,
    sizes: tuple[str, ...],
    bundle: Path,
    kernels: tuple[Path, ...],
    keep: str,
    schedule: str,
    seed: int,
    multiprocessors: int | None,
    output: Path | None,
    picture: Path | None,
    ctas: int,
    window: str | None,
    as_json: bool,
) -> int:
    """Show a launch on the CPU emulator over time: warps, tensor pipe, copies, waits.

    Sizes are given as `m=4096 k=7168`; those left out have small defaults. A kernel without an
    oracle needs all of them, and runs on random floats and on integers that are 0. Time is emulated
    steps, warp instructions one at a time: it shows order and overlap, not nanoseconds. Exits with
    1 where the emulator finds the kernel wrong; the trace then ends where the run did.
    """
    wish = Wish(
        problem=_problem(known_kernels(kernels).get(kernel), kernel, pairs(sizes)),
        keep=keep,
        schedule=Schedule.parse(schedule).name,
        seed=seed,
        multiprocessors=multiprocessors,
    )
    view = pictures.view(picture, ctas, window)
    kept = output or (None if picture else OUTPUT)
    choices.check_written(*(path for path in (kept, picture) if path), read=[bundle])
    recording = record(open_entries(bundle), wish)
    facts = _facts(recording, wish)
    view.draw(recording.chart, _caption(recording, wish))
    if kept:
        choices.write(kept, json.dumps(trace(recording.chart, facts), separators=(",", ":")))
    if as_json:
        console.print_json(_record(recording, facts, [path for path in (kept, picture) if path]))
    else:
        console.print_facts(facts)
    return _tell(recording)


def _problem(definition: Definition | None, kernel: str, sizes: Mapping[str, str]) -> Problem:
    """The request, with the defaults and inputs of its oracle if the kernel has one."""
    if definition is None:
        return plain(kernel, sizes)
    return known(definition, definition.case({**definition.emulated, **sizes}))


def _facts(recording: Recording, wish: Wish) -> dict[str, object]:
    grid, cluster = recording.plan.grid, recording.plan.cluster
    return {
        "variant": recording.variant.id,
        "problem": wish.problem.name,
        "grid": f"{grid.x}x{grid.y}x{grid.z} CTAs",
        "cluster": f"{cluster.x}x{cluster.y}x{cluster.z}",
        "schedule": f"{wish.schedule}, seed {wish.seed}",
        "steps": recording.chart.steps,
        **_ended(recording),
        "findings": len(recording.result.findings),
    }


def _record(
    recording: Recording, facts: Mapping[str, object], files: Sequence[Path]
) -> dict[str, object]:
    """The same for programs, with what was found in words."""
    told = {name.replace(" ", "_"): value for name, value in facts.items()}
    found = [str(finding) for finding in recording.result.findings]
    return told | {"findings": found, "files": list(map(str, files))}


def _ended(recording: Recording) -> dict[str, object]:
    """The error that ended the run early, if any."""
    error = recording.result.error
    return {} if error is None else {"ended by": f"{type(error).__name__} at {error.where}"}


def _caption(recording: Recording, wish: Wish) -> Caption:
    variant, problem = recording.variant, wish.problem.name.replace(",", ", ")
    return Caption(
        title=f"{variant.kernel} on {variant.arch}",
        lines=(variant.id, f"{problem} · schedule {wish.schedule}, seed {wish.seed}"),
    )


def _tell(recording: Recording) -> int:
    """Say what is wrong with the kernel; the exit code."""
    for finding in recording.result.findings:
        console.say(f"found: {finding}")
    if recording.result.error is not None:
        console.fail(recording.result.error)
    return 0 if recording.result.clean else 1
