"""`kernelpack build`: manifests → a bundle and its PTX twin."""

from pathlib import Path

import click

from kernelpack.build.options import Options, Outcome, Report, State
from kernelpack.build.pipeline import build
from kernelpack.cli import choices, console, settings
from kernelpack.cli.progress import watch


@click.command("build")
@choices.manifests
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("kernels.kpk"),
    show_default=True,
    help="The bundle; its PTX goes beside it, into X.ptx.kpk.",
)
@choices.targets
@choices.keep
@click.option(
    "--toolchain",
    type=click.Choice(["cuda-13.4", "cuda-12.9", "system"]),
    default="cuda-13.4",
    show_default=True,
    help="The CUDA release, from wheels; `system` is the one CUDA_HOME names.",
)
@click.option(
    "--front-end",
    type=click.Choice(["nvrtc", "nvcc"]),
    default="nvrtc",
    show_default=True,
    help="Who turns CUDA into PTX; nvcc needs a host g++.",
)
@click.option("--jobs", "-j", type=click.IntRange(1), help="Compiles at once; one a core.")
@click.option("--dry-run", is_flag=True, help="Say what would be compiled; make nothing.")
@click.option("--explain", is_flag=True, help="Say for each variant why it was compiled.")
@choices.as_json
def command(
    manifests: tuple[Path, ...],
    output: Path,
    targets: tuple[str, ...],
    keep: str,
    toolchain: str,
    front_end: str,
    jobs: int | None,
    dry_run: bool,
    explain: bool,
    as_json: bool,
) -> int:
    environment = settings.read()
    options = Options(
        manifests=choices.manifest_paths(manifests),
        templates=settings.sources() / "templates",
        output=output,
        targets=choices.arches(targets),
        toolchain=toolchain,
        front_end=front_end,
        cuda_home=environment.cuda_home,
        jobs=jobs,
        keep=keep,
        cache_dir=environment.cache_dir,
        dry_run=dry_run,
    )
    with watch() as progress:
        report = build(options, progress)
    if as_json:
        console.print_json(_record(report))
    else:
        _tell(report, dry_run=dry_run, explain=explain)
    return 1 if report.failures else 0


command.help = """Compile manifests into a bundle.

Every manifest that comes with kernelpack is built where none is named. What was compiled before
is taken from the cache. A variant that fails does not stop the others, but no bundle is written.
"""


def _tell(report: Report, *, dry_run: bool, explain: bool) -> None:
    for outcome in report.outcomes:
        _tell_outcome(outcome, explain=explain or dry_run)
    _tell_failures(report)
    counts = {state: report.count(state) for state in State if report.count(state)}
    console.say(
        f"{len(report.outcomes)} variants with {report.toolchain} in {report.seconds:.1f} s: "
        + ", ".join(f"{count} {state}" for state, count in counts.items())
    )
    if report.failures:
        console.say(f"{report.bundle} was not written")
    elif not dry_run:
        verb = "wrote" if report.written else "unchanged:"
        console.say(f"{verb} {report.bundle} ({console.size(report.bundle.stat().st_size)})")


def _tell_outcome(outcome: Outcome, *, explain: bool) -> None:
    if explain and outcome.state is not State.CACHED:
        print(f"{outcome.variant_id}: {outcome.state}: {', '.join(outcome.reasons)}")
    if outcome.killed_by:
        console.say(f"{outcome.variant_id}: killed by {outcome.killed_by}, compiled again alone")


def _tell_failures(report: Report) -> None:
    """Each message once, with how many variants it is about."""
    messages: dict[str, list[str]] = {}
    for o in report.outcomes:
        told = [f"warning: {text}" for text in o.warnings] + (
            [f"error: {o.error}"] if o.error else []
        )
        for text in told:
            messages.setdefault(text.replace(o.variant_id, "…"), []).append(o.variant_id)
    for text, ids in messages.items():
        more = f" and {len(ids) - 1} more variants" if len(ids) > 1 else ""
        console.say(f"{ids[0]}{more}: {text}")


def _record(report: Report) -> dict[str, object]:
    return {
        "bundle": str(report.bundle),
        "root": report.root,
        "written": report.written,
        "toolchain": report.toolchain,
        "seconds": round(report.seconds, 3),
        "variants": [
            {
                "id": o.variant_id,
                "state": str(o.state),
                "reasons": list(o.reasons),
                "seconds": round(o.seconds, 3),
                "error": str(o.error) if o.error else None,
                "warnings": list(o.warnings),
            }
            for o in report.outcomes
        ],
    }
