"""`kernelpack verify`: variants proven on the CPU emulator, no GPU needed; or on a GPU."""

from dataclasses import replace
from pathlib import Path

import rich_click as click

from kernelpack.bundle.reader import open_bundle
from kernelpack.cli import choices, console, settings
from kernelpack.cli.on_gpu import DeviceOptions, verify_on_gpu
from kernelpack.cli.progress import watch
from kernelpack.cli.what import bundles, of_kernels, template_folders
from kernelpack.emulator.faults import Level
from kernelpack.emulator.schedule import Schedule
from kernelpack.kernels.folder import folders
from kernelpack.verify.html import page
from kernelpack.verify.plan import Scope
from kernelpack.verify.report import Report, summary
from kernelpack.verify.source_lines import SourceLines
from kernelpack.verify.verified import record, record_path, write_record
from kernelpack.verify.verify import Options, verify

EMULATOR, GPU = "emulator", "gpu"
ONLY = {
    EMULATOR: ("schedule", "seed", "level", "strict", "full", "html"),
    GPU: ("device", "repeats", "time_limit"),
}
"""Options that are for one place."""


@click.command(
    "verify",
    epilog=choices.examples(
        "kernelpack verify kernels.kpk --html report.html",
        "kernelpack verify manifests/lora_shrink_qkv.yaml -k sm_90a",
        "kernelpack verify kernels.kpk --on gpu",
        "kernelpack verify rms_norm",
    ),
)
@click.argument(
    "what",
    nargs=-1,
    type=choices.SomePath(path_type=Path),
    metavar="[BUNDLE|MANIFEST|FOLDER|KERNEL]...",
)
@choices.templates
@choices.kernels
@choices.keep
@click.option(
    "--on",
    type=click.Choice([EMULATOR, GPU]),
    default=EMULATOR,
    show_default=True,
    help="Where: the CPU emulator, or this machine's GPU.",
)
@click.option(
    "--device", type=click.IntRange(0), default=0, show_default=True, help="On a GPU: which."
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="On a GPU: how often each variant runs on a case; all must give the same bits.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="On a GPU: how long a run may take, after which it has hung and is ended.",
)
@click.option(
    "--schedule",
    default="",
    metavar="NAME",
    help="Only this interleaving: eager, fair, lazy, or starving:RANK:WARP.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of random choices."
)
@choices.level
@click.option(
    "--strict", is_flag=True, help="Also report what hardware tolerates: `--level strict`."
)
@click.option("-j", "--jobs", type=click.IntRange(1), help="Runs at once; one a core if left out.")
@click.option(
    "--full", is_flag=True, help="Every small case under every schedule, and large ones; hours."
)
@click.option(
    "--html",
    type=choices.SomePath(path_type=Path, dir_okay=False),
    help="Also write a page with a map of the errors of every run.",
)
@choices.as_json
@click.pass_context
def command(
    context: click.Context,
    what: tuple[Path, ...],
    templates: Path | None,
    kernels: tuple[Path, ...],
    keep: str,
    on: str,
    device: int,
    repeats: int,
    time_limit: float,
    schedule: str,
    seed: int,
    level: Level,
    strict: bool,
    jobs: int | None,
    full: bool,
    html: Path | None,
    as_json: bool,
) -> int:
    """Prove variants on the CPU emulator against the float64 oracle.

    Runs the PTX that was assembled, by the launch plan that a GPU would get, and looks for races,
    missing fences, wrong barriers and memory that was never written. A bundle needs its PTX,
    X.ptx.kpk, beside it; a manifest, or the folder of a kernel of your own, is built into the cache
    first, and all of kernelpack's own manifests where nothing is named. A kernel's name stands for
    the installed bundles that hold it. Adds what was run to X.verified.json beside each bundle, of
    an installed one in this folder. The cache provides earlier results, so an
    interrupted run goes on where it stopped. Pairs of cases and interleavings are shared out among
    all variants of a bundle: `-k` runs the share of those it keeps, and a bundle of one variant has
    all of them. Exits with 1 on any wrong number or finding.

    With `--on gpu`, every variant that the device can run is run on every case that it serves, in
    child processes, so that one that faults or hangs ends alone. Memory around each array is
    watched, and repeated runs must give the same bits. Needs no PTX; adds to
    X.verified.DEVICE.json.
    """
    choices.check_place(context, on, ONLY)
    if schedule:
        Schedule.parse(schedule)
    choices.check_written(*([html] if html else []), read=what)
    scope = Scope(full=full, schedule=schedule, seed=seed, level=Level.STRICT if strict else level)
    cache = settings.read().cache_dir
    named = [path for path in what if path.is_dir()]
    folder_paths = tuple(folder.path for folder in folders([*named, *kernels]))
    keep = of_kernels(what, keep)
    asked = Options(
        bundle=Path(),
        keep=keep,
        scope=scope,
        jobs=jobs,
        cache_dir=cache,
        kernels=folder_paths,
    )
    if on == GPU:
        wish = DeviceOptions(
            bundle=Path(),
            keep=keep,
            device=device,
            repeats=repeats,
            limit_s=time_limit,
            jobs=jobs,
            cache_dir=cache,
            kernels=folder_paths,
        )
        return verify_on_gpu(bundles(what, asked, templates), wish, as_json=as_json)
    sources = template_folders(what, templates, folder_paths)
    reports = []
    for bundle in bundles(what, asked, templates):
        beside = choices.beside(bundle)
        choices.check_written(record_path(beside))
        with watch() as progress:
            found = verify(replace(asked, bundle=bundle), progress)
        lines = SourceLines(open_bundle(bundle).provenance.sources, sources)
        reports.append(replace(found, beside=beside, lines=lines))
        path = write_record(reports[-1])
        console.say(f"wrote {path}")
    if html:
        choices.write(html, page(reports))
    _tell(reports, as_json=as_json)
    return 0 if all(report.is_right for report in reports) else 1


def _tell(reports: list[Report], *, as_json: bool) -> None:
    if as_json:
        console.print_json([record(report) for report in reports])
        return
    for report in reports:
        for line in summary(report):
            console.show(line)
