"""`kernelpack build`: manifests → a bundle and its PTX twin."""

from pathlib import Path

import rich_click as click

from kernelpack.build.options import Options
from kernelpack.build.pipeline import build
from kernelpack.bundle.shard import Shard
from kernelpack.cli import choices, console, outcomes, settings
from kernelpack.cli.progress import watch


@click.command(
    "build",
    epilog=choices.examples(
        "kernelpack build -o kernels.kpk",
        "kernelpack build manifests/lora_shrink_qkv.yaml -k sm_90a -o lora.kpk",
        "kernelpack build rms_norm -o rms_norm.kpk",
        "kernelpack build --dry-run --explain",
    ),
)
@choices.manifests
@choices.output
@choices.templates
@choices.kernels
@choices.targets
@choices.keep
@choices.shard
@click.option(
    "--toolchain",
    type=click.Choice(["cuda-13.4", "cuda-12.9", "system"]),
    default="cuda-13.4",
    show_default=True,
    help="The CUDA release, from wheels; `system` is that of CUDA_HOME, or of nvcc on PATH.",
)
@click.option(
    "--front-end",
    type=click.Choice(["nvrtc", "nvcc"]),
    default="nvrtc",
    show_default=True,
    help="Who turns CUDA into PTX; nvcc needs a host g++.",
)
@click.option(
    "-j", "--jobs", type=click.IntRange(1), help="Compiles at once; one a core if left out."
)
@click.option(
    "--scheduler",
    default="",
    metavar="ADDRESS",
    help="Compile on the workers of this dask scheduler, `tcp://HOST:8786`, which decides how many "
    "at once; needs kernelpack[dask].",
)
@click.option(
    "--remote-cache",
    metavar="URL",
    help="A cache that machines share, such as `s3://bucket/folder`; what KERNELPACK_REMOTE_CACHE "
    "says if left out. Needs kernelpack[remote].",
)
@click.option(
    "--remote-read-only", is_flag=True, help="Take from the remote cache, and put nothing there."
)
@click.option("--dry-run", is_flag=True, help="Say what would be compiled, and why; make nothing.")
@click.option("--explain", is_flag=True, help="Say for each variant why it was compiled.")
@choices.as_json
def command(
    manifests: tuple[Path, ...],
    output: Path,
    templates: Path | None,
    kernels: tuple[Path, ...],
    targets: tuple[str, ...],
    keep: str,
    shard: Shard | None,
    toolchain: str,
    front_end: str,
    jobs: int | None,
    scheduler: str,
    remote_cache: str | None,
    remote_read_only: bool,
    dry_run: bool,
    explain: bool,
    as_json: bool,
) -> int:
    """Compile manifests into a bundle.

    A kernel of your own is built from its folder. Where nothing is named, every manifest that comes
    with kernelpack is built. The cache provides what was compiled before. A variant that fails
    does not stop the others, but no bundle is written then.
    """
    environment = settings.read()
    paths = choices.manifest_paths(manifests, kernels)
    options = Options(
        manifests=paths,
        templates=choices.templates_for(templates, paths),
        kernels=choices.kernels_of(paths),
        output=output,
        targets=choices.arches(targets),
        toolchain=toolchain,
        front_end=front_end,
        cuda_home=environment.toolkit,
        jobs=jobs,
        scheduler=scheduler,
        remote_cache=remote_cache or environment.remote_cache or "",
        remote_read_only=remote_read_only,
        keep=keep,
        cache_dir=environment.cache_dir,
        shard=shard,
        dry_run=dry_run,
    )
    with watch() as progress:
        report = build(options, progress)
    if as_json:
        console.print_json(outcomes.record(report))
    else:
        outcomes.tell(report, dry_run=dry_run, explain=explain or dry_run)
    return 1 if report.failures else 0
