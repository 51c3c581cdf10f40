"""`kernelpack wheel`: a bundle → wheels that `pip` installs and `kernelpack.load()` finds."""

from pathlib import Path

import rich_click as click

from kernelpack.bundle.reader import Bundle, open_entries
from kernelpack.cli import choices, console
from kernelpack.errors import KernelpackError
from kernelpack.files import publish_all
from kernelpack.installed import PROJECT, announced, owner
from kernelpack.kernels.folder import folders
from kernelpack.kernels.registry import GROUP
from kernelpack.spec.counted import counted
from kernelpack.wheel.wheel import Wheel, wheels


@click.command(
    "wheel",
    epilog=choices.examples(
        "kernelpack wheel kernels.kpk -o dist",
        "kernelpack wheel rms_norm.kpk --kernels rms_norm --project rms-norm --version 1.0",
    ),
)
@choices.bundle
@click.option(
    "-o",
    "--output",
    type=choices.SomePath(path_type=Path, file_okay=False),
    default=Path("dist"),
    show_default=True,
    help="The folder; files of the same names are replaced.",
)
@click.option(
    "--project",
    default=PROJECT,
    show_default=True,
    help="What the names of the wheels begin with: PROJECT-cubins-sm100. Kernels of your own need "
    "one.",
)
@click.option(
    "--version",
    default="",
    help="Of the wheels; if left out, that of the kernelpack that built the bundle.",
)
@click.option(
    "--key",
    type=choices.SomePath(path_type=Path, dir_okay=False),
    help="Sign each part with this private key; a bundle of one architecture keeps its signature.",
)
@choices.kernels
@choices.as_json
def command(
    bundle: Path,
    output: Path,
    project: str,
    version: str,
    key: Path | None,
    kernels: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Wrap a bundle into wheels of data, one for each architecture.

    With kernelpack, that of its GPU is all that a server installs: `kernelpack.load()` finds what
    is installed. The PTX beside the bundle goes into wheels of its own, for those who emulate. So
    do the folders of kernels of your own that `--kernels` names: with PROJECT-kernels installed,
    `verify NAME` and `run NAME` need no folder. Equal bundles give equal bytes. A wheel above 95 MB
    is refused; the message says which axes of the manifests cost most.
    """
    opened = open_entries(bundle)
    _check_project(opened, project)
    console.say(f"packing {counted(len(opened), 'entry', 'entries')}")
    made = list(wheels(opened, project, version, key, folders(kernels)))
    output.mkdir(parents=True, exist_ok=True)
    paths = publish_all((output / wheel.filename, wheel.data) for wheel in made)
    if as_json:
        told = zip(paths, made, strict=True)
        console.print_json([_record(path, wheel) for path, wheel in told])
    else:
        for path in paths:
            print(path)
    for wheel in made:
        size = console.size(len(wheel.data))
        entries = counted(wheel.entries, "entry", "entries")
        console.say(f"{wheel.filename}: {entries}, {size}")


def _check_project(bundle: Bundle, project: str) -> None:
    """Refuse to call wheels of other kernels as kernelpack's own are called.

    Raises:
        KernelpackError: the bundle holds one; installed, they would replace kernelpack's.

    """
    ours = {point.name for point in announced(GROUP) if owner(point) == PROJECT}
    others = [stem for stem in bundle.kernels if stem not in ours]
    if others and project == PROJECT:
        what = (
            f"`{others[0]}` is not one of kernelpack's kernels, whose wheels begin with `{project}`"
        )
        hint = f"name yours: --project {others[0].replace('_', '-')}"
        raise KernelpackError(what, where=str(bundle.path), hint=hint)


def _record(path: Path, wheel: Wheel) -> dict[str, object]:
    return {"wheel": str(path), "entries": wheel.entries, "bytes": len(wheel.data)}
