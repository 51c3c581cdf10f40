"""The bundle that `kernelpack verify` makes of manifests, which needs the builder."""

from pathlib import Path

from kernelpack.build.options import Options as BuildOptions
from kernelpack.build.pipeline import build
from kernelpack.cache.location import default_root
from kernelpack.cli import choices, outcomes, settings
from kernelpack.cli.progress import watch
from kernelpack.errors import BundleError
from kernelpack.spec.artifact import digest
from kernelpack.verify.verify import Options


def built(manifests: tuple[Path, ...], asked: Options, templates: Path) -> Path:
    """A bundle of manifests, in the cache under their names and the choice.

    Raises:
        BundleError: a variant does not build.

    """
    paths = [str(path.resolve()) for path in (*manifests, templates)]
    name = digest("\n".join([*paths, asked.keep]))[:16]
    options = BuildOptions(
        manifests=manifests,
        templates=templates,
        kernels=choices.kernels_of(manifests),
        output=(asked.cache_dir or default_root()) / "verified" / f"{name}.kpk",
        keep=asked.keep,
        jobs=asked.jobs,
        cuda_home=settings.read().toolkit,
        cache_dir=asked.cache_dir,
    )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with watch() as progress:
        report = build(options, progress)
    if report.failures:
        outcomes.tell(report, dry_run=False, explain=False)
        raise BundleError("does not build, so nothing was verified", where=str(manifests[0]))
    return options.output
