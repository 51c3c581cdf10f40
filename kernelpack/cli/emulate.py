"""`kernelpack emulate`: a program written for CUDA, on a machine with no GPU."""

import json
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from signal import SIGINT, strsignal

import rich_click as click

from kernelpack import process
from kernelpack.cache.location import default_root
from kernelpack.cli import choices, console, predicting, settings, streams, twins
from kernelpack.cli.compiled import compiled
from kernelpack.emulate import devices, expected, modelled, native, options, standin
from kernelpack.emulate.emulate import emulate
from kernelpack.emulate.report import Log, Report, record
from kernelpack.emulate.source_lines import SourceLines
from kernelpack.emulator import rules
from kernelpack.emulator.faults import Level, Rule
from kernelpack.emulator.run import STEP_LIMIT, run
from kernelpack.emulator.schedule import OF_ONE, Schedule
from kernelpack.spec.counted import counted
from kernelpack.toolchain.locate import find


@click.command(
    "emulate",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog=choices.examples(
        "kernelpack emulate ./program --size 64",
        "kernelpack emulate --compile program.cu --size 64",
        "kernelpack emulate --device h100 --schedule fair --report report.json ./program",
        "kernelpack emulate --device h100 ./server kernels.kpk",
        "kernelpack emulate --rules race",
    ),
)
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="PROGRAM [ARGUMENT]...")
@click.option(
    "--device",
    type=click.Choice(list(devices.DEVICES)),
    default="b200",
    show_default=True,
    help="The device that the program finds.",
)
@click.option(
    "--multiprocessors",
    type=click.IntRange(1, 1024),
    help="How many multiprocessors it has; persistent kernels launch a CTA for each.",
)
@click.option(
    "--kernels",
    metavar="PATTERN",
    default="*",
    help="Apply the schedule and the checks only to kernels whose name matches, mangled or not; "
    "others run eagerly.",
)
@click.option(
    "--native",
    "native_path",
    type=choices.SomePath(path_type=Path, exists=True, dir_okay=False),
    help="A Python file whose KERNELS map name patterns to functions that do those kernels' work.",
)
@click.option(
    "--schedule",
    default="eager",
    show_default=True,
    help="How warps interleave: eager, fair, lazy or starving:RANK:WARP.",
)
@click.option("--seed", default=0, show_default=True, help="Of the schedule's random choices.")
@choices.level
@click.option(
    "--max-steps",
    type=click.IntRange(1),
    default=STEP_LIMIT,
    show_default=True,
    help="Warp instructions after which a launch is given up.",
)
@click.option(
    "--memory",
    "memory_mb",
    type=click.IntRange(1, 1 << 20),
    default=1024,
    show_default=True,
    help="Device memory in MiB; only what is touched is held.",
)
@click.option(
    "--bundle",
    "bundles",
    type=choices.SomePath(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    help="A bundle that the program loads, where no argument names it: its machine code runs by "
    "the PTX beside it.",
)
@click.option(
    "--expected",
    "expected_path",
    type=choices.SomePath(path_type=Path, exists=True, dir_okay=False),
    help="A TOML file of findings that are known and do not count.",
)
@click.option(
    "--report",
    "report_path",
    type=choices.SomePath(path_type=Path, dir_okay=False),
    help="Write the outcome of each launch to this file, as JSON.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    callback=choices.asked,
    help="Print the same on stdout; what the program prints there goes to stderr.",
)
@click.option(
    "--rules",
    "rule",
    metavar="[NAME]",
    is_flag=False,
    flag_value="*",
    help="Print the rules that a kernel can break, or those of this name, and run nothing.",
)
@click.option(
    "--compile",
    "is_source",
    is_flag=True,
    help="PROGRAM is a source, X.cu: compile it first, by the nvcc of the toolchain.",
)
@click.option(
    "--check",
    "is_checked",
    is_flag=True,
    help="Say what PROGRAM's kernels use that is not modelled, and run nothing; PROGRAM may be a "
    "file of PTX.",
)
@click.option(
    "--predict",
    "predicted",
    metavar="NAME",
    help="Say what each launch that --kernels names should cost on this device, such as h200 or "
    "b200, and run a few of its clusters alone. The program finds such a device.",
)
@choices.warm
@click.option(
    "--libraries",
    is_flag=True,
    help="Print the folder of the stand-in's libraries, to link against, and run nothing.",
)
def command(
    program: tuple[str, ...],
    device: str,
    multiprocessors: int | None,
    kernels: str,
    native_path: Path | None,
    schedule: str,
    seed: int,
    level: Level,
    max_steps: int,
    memory_mb: int,
    bundles: tuple[Path, ...],
    expected_path: Path | None,
    report_path: Path | None,
    as_json: bool,
    rule: str | None,
    is_source: bool,
    is_checked: bool,
    predicted: str | None,
    warm: bool,
    libraries: bool,
) -> int:
    """Run a host program with its kernels on the emulator, on a machine with no GPU.

    The program's CUDA runtime and driver are replaced by a stand-in; each launch runs on the
    emulator, and stderr reports what is wrong with it. `--compile program.cu` compiles a program
    of one source. Build others with `nvcc -gencode arch=compute_100a,code=compute_100a
    --compress-mode=none -cudart shared` (or `none`), and link with `-L$(kernelpack emulate
    --libraries) -lcudart -lcuda`. Exits with the program's own code where
    that is not 0, with 1 where something was found that is not expected.
    """
    if rule:
        _print_rules(rules.TABLE if rule == "*" else rules.of_name(rule))
        return 0
    predictor = predicting.asked(predicted, is_warm=warm)
    found = predictor.found_by_program if predictor else devices.find(device)
    if is_checked and program:
        return _check(Path(program[0]), found.capability, as_json=as_json)
    folder = standin.build(cache_dir(), find().include_dirs)
    if libraries:
        print(folder)
        return 0
    if not program:
        raise click.UsageError("Missing argument 'PROGRAM'", click.get_current_context())
    chosen = Schedule.parse(schedule, seed, known=OF_ONE)
    if chosen.launches > 1:
        raise click.UsageError(
            f"`{schedule}` launches a kernel twice: run it by itself, with kernelpack.emulator",
            click.get_current_context(),
        )
    told = options.Options(
        device=found.with_multiprocessors(multiprocessors) if multiprocessors else found,
        memory_bytes=memory_mb << 20,
        kernels=kernels,
        natives=native.load(native_path) if native_path else {},
        schedule=chosen,
        level=level,
        step_limit=max_steps,
        expected=expected.load(expected_path) if expected_path else (),
        text_of=twins.text_of(bundles, program[1:], found),
        environment=dict(os.environ),
        lines=SourceLines.of(Path(program[0])),
        run=predictor.run if predictor else run,
    )
    if report_path:
        choices.check_written(report_path, read=[Path(program[0])])
    log = Log()
    try:
        with (
            process.orderly(),
            _compiled(program[0], found, folder) if is_source else nullcontext(program[0]) as made,
            streams.stdout_is_ours() if as_json else nullcontext(),
        ):
            report = emulate((str(made), *program[1:]), folder, told, console.say, log)
    except (KeyboardInterrupt, SystemExit) as stop:
        code = int(stop.code or 0) if isinstance(stop, SystemExit) else 128 + SIGINT
        console.say(f"interrupted after {counted(len(log.launches), 'launch', 'launches')}")
        finished = _told(log.report((), code), predictor)
        _put(finished, report_path, as_json=as_json)
        return code
    for unmet in told.unmet(report.launches):
        console.say(f"note: {unmet}")
    _put(_told(report, predictor), report_path, as_json=as_json)
    return _conclude(report, predictor)


def _compiled(source: str, device: devices.Device, libraries: Path) -> AbstractContextManager[Path]:
    """The program of a source, as long as it runs."""
    headers = settings.sources() / "templates" / "include"
    return compiled(Path(source), device, find(front_end="nvcc"), headers, libraries)


def _told(report: Report, predictor: predicting.Predicting | None) -> dict[str, object]:
    """The report for programs, with what was predicted."""
    return record(report) | (predictor.record() if predictor else {})


def _put(told: dict[str, object], path: Path | None, *, as_json: bool) -> None:
    """Give the report to programs, as they asked for it."""
    if path:
        choices.write(path, json.dumps(told, indent=2) + "\n")
    if as_json:
        console.print_json(told)


def _print_rules(rows: Sequence[Rule]) -> None:
    """Each rule with what is wrong and what would be right."""
    for row in rows:
        print(f"{row.name} ({row.level.name.lower()}, PTX ISA {row.section}): {row.what}")
        print(f"  mend: {row.mend}")


def _check(path: Path, capability: tuple[int, int], *, as_json: bool) -> int:
    """Print each kernel that does not run, with what it uses; 1 where there is one."""
    kernels = list(modelled.refused(path, capability))
    bad = [(name, forms) for name, forms in kernels if forms]
    if as_json:
        console.print_json([{"kernel": name, "refused": forms} for name, forms in kernels])
        return bool(bad)
    for name, forms in bad:
        print(f"kernel {name}: not modelled: {', '.join(forms)}")
    print(f"{counted(len(kernels), 'kernel')}, {len(bad)} with instructions that are not modelled")
    return bool(bad)


def cache_dir() -> Path:
    """Where the stand-in is kept: beside what `build` caches."""
    return settings.read().cache_dir or default_root()


def _conclude(report: Report, predictor: predicting.Predicting | None) -> int:
    """Say the sum; the exit code."""
    if predictor:
        predictor.conclude()
    findings = list(report.findings())
    known = sum(1 for trouble in (*findings, *report.errors) if trouble.expected)
    console.say(
        f"{counted(len(report.launches), 'launch', 'launches')}, "
        f"{counted(sum(x.steps for x in report.launches), 'warp instruction')}, "
        f"{counted(len(findings), 'finding')} and {counted(len(report.errors), 'error')} "
        f"({known} expected), {len(report.refused)} refused; {_ending(report.returncode)}"
    )
    if not report.launches and not report.refused:
        console.say("note: the program launched no kernel")
    for missed in report.missed:
        console.say(f"error: {missed}")
    return _code(report.returncode) or (0 if report.is_right else 1)


def _ending(returncode: int) -> str:
    if returncode < 0:
        return f"the program was ended by a signal: {strsignal(-returncode)}"
    return f"the program's exit code is {returncode}"


def _code(returncode: int) -> int:
    """The exit code as a shell says it: 128 and the signal, where one ended the program."""
    return 128 - returncode if returncode < 0 else returncode
