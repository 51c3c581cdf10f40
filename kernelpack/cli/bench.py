"""`kernelpack bench`: the variants of a kernel timed on this machine's GPU."""

from functools import partial
from pathlib import Path

import rich_click as click

from kernelpack.cli import choices, complete, console
from kernelpack.cli.run import pairs
from kernelpack.device.apart import LostError, apart, surviving
from kernelpack.device.bench import Asked, Bench, Row, bench_of
from kernelpack.device.machine import device_of
from kernelpack.device.timing import Effort
from kernelpack.kernels.registry import known
from kernelpack.runtime.driver import connect

GPU, EMULATOR = "gpu", "emulator"
ONLY = {GPU: ("against", "all_", "keep", "device", "rounds"), EMULATOR: ("arch",)}
"""Options that are for one place."""


@click.command(
    "bench",
    epilog=choices.examples(
        "kernelpack bench lora_shrink_qkv m=4096 k=7168 --bundle kernels.kpk --all",
        "kernelpack bench nvfp4_quantize --bundle new.kpk --against old.kpk",
        "kernelpack bench lora_shrink_qkv --bundle kernels.kpk --on emulator",
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
    "--against",
    type=choices.SomePath(path_type=Path),
    help="Another bundle, whose variants take turns with those of the first.",
)
@click.option(
    "--all", "all_", is_flag=True, help="Every variant that may serve, not the chosen one alone."
)
@choices.keep
@click.option(
    "--on",
    type=click.Choice([GPU, EMULATOR]),
    default=GPU,
    show_default=True,
    help="Where; the emulator counts what the chosen variant does, and measures no time.",
)
@click.option("--arch", type=choices.TargetName(), help="On the emulator: whose kernels run.")
@choices.kernels
@choices.tuned
@click.option("--device", type=click.IntRange(0), default=0, show_default=True, help="The GPU.")
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Turns that each variant has; a turn is five replays of its graph.",
)
@choices.as_json
@click.pass_context
def command(
    context: click.Context,
    kernel: str,
    sizes: tuple[str, ...],
    bundle: Path | None,
    against: Path | None,
    all_: bool,
    keep: str,
    on: str,
    arch: str | None,
    kernels: tuple[Path, ...],
    tuned: Path | None,
    device: int,
    rounds: int,
    as_json: bool,
) -> int:
    """Time a kernel's variants on this machine's GPU.

    Sizes are given as `m=4096 k=7168`; those left out have defaults. The variant that selection
    takes is timed; with `--all` every one that may serve, with `-k` those of them that it keeps.
    A time is that of one launch in a CUDA graph of many, whose arrays are together larger than the
    L2 cache; variants take turns. Beside the median is how far nine tenths and one tenth of the
    replays lie apart. The floor is the time in which a copy on this device moves as many bytes as
    the arguments hold. It does not verify results: `kernelpack verify --on gpu` does that.

    With `--on emulator` sizes have small defaults, and the output has counts: CTAs, warp
    instructions by the unit that does their work, bytes by what moves them, and multiplications of
    tensor cores. Nothing of it is a time.
    """
    definition = known(kernels).find(kernel)
    choices.check_place(context, on, ONLY)
    if on == EMULATOR:
        from kernelpack.cli.counted import tell  # noqa: PLC0415 - a GPU needs no emulator

        case = definition.case({**definition.emulated, **pairs(sizes)})
        return tell(choices.bundle_path(bundle), arch, tuned, definition, case, as_json=as_json)
    case = definition.case(pairs(sizes))
    device_of(connect(), device)
    asked = Asked(
        bundle=choices.bundle_path(bundle),
        against=against,
        tuned=tuned,
        kernel=kernel,
        kernels=kernels,
        case=case,
        keep=keep,
        is_all=all_,
        device=device,
        effort=Effort(rounds=rounds),
    )
    lost: list[LostError] = []
    (found,) = surviving(partial(bench_of, asked, connect), lost.append, apart)
    if as_json:
        console.print_json(record(found))
    else:
        _show(found)
    return console.exit_code(lost)


def _show(found: Bench) -> None:
    before, after = found.clocks
    facts: dict[str, object] = {
        "device": f"{found.device}, {found.driver}",
        "problem": found.problem,
        "copy floor": f"{found.floor:.2f} us: {found.bytes / 1e6:.2f} MB at "
        f"{found.copy_rate / 1e6:.2f} TB/s",
        "arrays": f"{found.sets} sets take turns",
    }
    if after:
        facts["clocks"] = ", ".join(f"{n} {before.get(n, '?')} -> {v}" for n, v in after.items())
    console.print_facts(facts)
    several = len({row.bundle for row in found.rows}) > 1
    for row in found.rows:
        console.show(_line(row, found.floor, several=several))


def _line(row: Row, floor: float, *, several: bool) -> str:
    time = row.time
    chosen = " (chosen)" if row.is_chosen else ""
    bundle = f"{row.bundle.name}: " if several else ""
    return (
        f"{time.median:9.2f} us  spread {100 * time.spread:4.1f}%  "
        f"{100 * floor / time.median:5.1f}% of the floor  {bundle}{row.variant_id}{chosen}"
    )


def record(found: Bench) -> dict[str, object]:
    """The same for programs."""
    major, minor = found.device.capability
    return {
        "device": found.device.name,
        "capability": f"{major}.{minor}",
        "driver": found.driver,
        "problem": found.problem,
        "argument_bytes": found.bytes,
        "array_sets": found.sets,
        "copy_bytes_per_microsecond": round(found.copy_rate),
        "floor_microseconds": round(found.floor, 3),
        "clocks": {"before": dict(found.clocks[0]), "after": dict(found.clocks[1])},
        "variants": [
            {
                "bundle": str(row.bundle),
                "id": row.variant_id,
                "chosen": row.is_chosen,
                "microseconds": round(row.time.median, 3),
                "low": round(row.time.low, 3),
                "high": round(row.time.high, 3),
                "percent_of_floor": round(100 * found.floor / row.time.median, 1),
            }
            for row in found.rows
        ],
    }
