"""Options that several verbs take, said once."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import rich_click as click
from click.core import ParameterSource

from kernelpack.bundle.discover import find as installed_bundles
from kernelpack.bundle.shard import Shard, parse_shard
from kernelpack.cli import complete, console, settings
from kernelpack.emulator.faults import Level
from kernelpack.errors import BundleError, KernelpackError, OracleError
from kernelpack.files import publish
from kernelpack.kernels.folder import folders
from kernelpack.kernels.folder import of as of_manifest
from kernelpack.spec.arch import REFUSED, TARGETS, Arch, architecture, unknown
from kernelpack.spec.nearest import nearest


class TargetName(click.Choice[str]):
    """The name of a target; one that is refused by name says why."""

    def __init__(self) -> None:
        super().__init__(list(TARGETS))

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, as it is."""
        if architecture(value) in REFUSED:
            self.fail("; ".join(unknown(value)), param, ctx)
        return super().convert(value, param, ctx)


class SomePath(click.Path):
    """A path; an empty text would be the working folder, and is refused."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        """The path, if there is one."""
        if not str(value):
            self.fail("an empty text is not a path", param, ctx)
        return super().convert(value, param, ctx)


targets = click.option(
    "-t",
    "--target",
    "targets",
    multiple=True,
    type=TargetName(),
    help="Build for this target; may be repeated. All of each manifest's if left out.",
)


def _all(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> str:
    """One expression that holds where each one given does."""
    return given[0] if len(given) == 1 else " and ".join(f"({text})" for text in given)


keep = click.option(
    "-k",
    "keep",
    multiple=True,
    callback=_all,
    shell_complete=complete.keep,
    metavar="EXPR",
    help="Only variants whose id holds these words: `sm_90a and not fp16`; `dtype=bf16` is about "
    "one axis, `bf16` about any. Of several -k, all must hold.",
)
templates = click.option(
    "--templates",
    type=SomePath(path_type=Path, file_okay=False, exists=True),
    help="The folder of templates. If left out: `templates` beside the manifests' folder, or else "
    "kernelpack's own.",
)


def _kernels(
    context: click.Context, _option: click.Parameter, given: tuple[Path, ...]
) -> tuple[Path, ...]:
    """The kernels' folders in those given, else in those of KERNELPACK_KERNELS."""
    if context.resilient_parsing:  # a shell completes a line, which may be wrong yet
        return given
    if given:
        return tuple(folder.path for folder in folders(given))
    try:
        return tuple(folder.path for folder in folders(settings.read().kernels))
    except OracleError as error:
        where = f"KERNELPACK_KERNELS: {error.where}"
        raise OracleError(error.what, where=where, hint=error.hint) from error


kernels = click.option(
    "--kernels",
    multiple=True,
    callback=_kernels,
    type=SomePath(path_type=Path, file_okay=False, exists=True),
    metavar="FOLDER",
    help="A kernel of your own, NAME/ with NAME.yaml, NAME.cu.j2 and NAME.py in it, or a folder of "
    "such; may be repeated. Those of KERNELPACK_KERNELS if left out.",
)


def _level(_context: click.Context, _option: click.Parameter, given: str) -> Level:
    """The level of a name."""
    return Level.of(given)


level = click.option(
    "--level",
    type=click.Choice([level.name.lower() for level in Level]),
    default="warn",
    show_default=True,
    callback=_level,
    help="Report findings up to this level.",
)
warm = click.option(
    "--warm",
    is_flag=True,
    help="Predict for an L2 that has from the start what a launch reads, if it has room for that "
    "and for what the launch writes.",
)
output = click.option(
    "-o",
    "--output",
    type=SomePath(path_type=Path, dir_okay=False),
    default=Path("kernels.kpk"),
    show_default=True,
    help="The bundle; its PTX goes beside it, into X.ptx.kpk.",
)


def _shard(context: click.Context, option: click.Parameter, given: str | None) -> Shard | None:
    """The shard that a text names."""
    shard = parse_shard(given) if given else None
    if given and (shard is None or shard.whole):
        raise click.BadParameter(f"`{given}` is no I/N with 1 <= I <= N", context, option)
    return shard


shard = click.option(
    "--shard",
    callback=_shard,
    metavar="I/N",
    help="Build part I of N; `kernelpack merge` makes the whole of the N bundles.",
)


def asked(context: click.Context, _option: click.Parameter, given: bool) -> bool:
    """Report errors as JSON too."""
    wish = context.find_object(console.Asked)
    if given and wish:
        wish.json = True
    return given


as_json = click.option(
    "--json", "as_json", is_flag=True, callback=asked, help="Print JSON for programs."
)
manifests = click.argument(
    "manifests", nargs=-1, type=SomePath(path_type=Path), metavar="[MANIFEST|FOLDER]..."
)
bundle = click.argument("bundle", type=SomePath(path_type=Path))


tuned = click.option(
    "--tuned",
    type=SomePath(path_type=Path, dir_okay=False),
    help="Times that `kernelpack tune` measured on this device, which choose in place of the "
    "manifest's costs.",
)


def examples(*lines: str) -> str:
    """The end of a verb's help: command lines as people type them, each on its own line."""
    return "\n\n".join(("Examples:", *lines))  # single line ends are blanks to rich-click


def arches(targets: tuple[str, ...]) -> tuple[Arch, ...] | None:
    """The targets asked for, each once; None where none was named."""
    return tuple(Arch(name) for name in dict.fromkeys(targets)) or None


def manifest_paths(given: tuple[Path, ...], kernels: Sequence[Path] = ()) -> tuple[Path, ...]:
    """The manifests asked for; of none the kernels' folders', and of no such kernelpack's own.

    Args:
        given: manifests, and folders of kernels.
        kernels: folders of kernels.

    Raises:
        KernelpackError: there are none, or one that was named is not there.

    """
    own = settings.manifests()
    found = tuple(path for each in given or kernels for path in _manifests(each)) or own
    if not found:
        where = settings.sources() / "manifests"
        raise KernelpackError("no manifests found", where=str(where), hint="name one")
    for path in found:
        if not path.exists():
            raise KernelpackError(
                "there is no such manifest", where=str(path), hint=_meant(path, own)
            )
    return found


def _manifests(path: Path) -> Sequence[Path]:
    """A manifest, or those in a folder of kernels."""
    return [folder.manifest for folder in folders([path])] if path.is_dir() else [path]


def kernels_of(manifests: Sequence[Path]) -> tuple[Path, ...]:
    """The folders of the kernels whose manifests lie in them."""
    found = [of_manifest(path) for path in manifests]
    return tuple(folder.path for folder in found if folder)


def templates_for(given: Path | None, manifests: Sequence[Path]) -> Path:
    """The folder of templates: as named, else the one beside the manifests, else kernelpack's own.

    So a checkout's manifests are built of its own templates, whichever kernelpack is installed. The
    template of a kernel's folder lies in it, and its headers are kernelpack's own.

    Raises:
        KernelpackError: the manifests lie beside several.

    """
    if given:
        return given
    others = [path for path in manifests if not of_manifest(path)]
    beside = {path.resolve().parents[1] / "templates" for path in others}
    found = sorted(folder for folder in beside if folder.is_dir())
    if len(found) > 1:
        what = (
            f"the manifests lie beside several folders of templates: {', '.join(map(str, found))}"
        )
        raise KernelpackError(what, hint="name one with --templates, or build one after the other")
    return found[0] if found else settings.sources() / "templates"


def _meant(missing: Path, own: Sequence[Path]) -> str:
    """The manifest of kernelpack's own that was probably meant, or all of them."""
    if not own:
        return "give the path of a YAML file"
    folder, here = own[0].parent, Path.cwd()
    shown = folder.relative_to(here) if folder.is_relative_to(here) else folder
    names = [path.name for path in own]
    if nearest(f"{missing.stem}.yaml", names):
        return nearest(str(shown / f"{missing.stem}.yaml"), [str(shown / name) for name in names])
    return f"kernelpack's own are in {shown}: {', '.join(names)}"


def bundle_path(given: Path | None) -> Path | None:
    """The bundle to run from: as named, else as KERNELPACK_BUNDLE says; None: the installed one.

    Raises:
        BundleError: none is named and none is installed.

    """
    path = given or settings.read().bundle
    if path is None and not installed_bundles():
        hint = "`kernelpack build -o kernels.kpk`, then `--bundle kernels.kpk`"
        raise BundleError("no bundle is named, and none is installed", hint=hint)
    return path


def beside(bundle: Path) -> Path:
    """The path that records of a bundle lie beside: its own, or one here if it is installed."""
    is_installed = bundle in installed_bundles()
    return Path(f"{bundle.parent.name}{bundle.suffix}") if is_installed else bundle


def check_place(context: click.Context, on: str, only: Mapping[str, Sequence[str]]) -> None:
    """Refuse what was typed and is for another place than `on`; `only` are a place's own options.

    Raises:
        UsageError: names the option.

    """
    others = [name for place, names in only.items() if place != on for name in names]
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in others and source is ParameterSource.COMMANDLINE:
            word = max(option.opts, key=len)
            raise click.UsageError(f"{word} is not for `--on {on}`", context)


def check_written(*paths: Path, read: Sequence[Path] = ()) -> None:
    """Refuse files that cannot be written, before the work that they are to hold.

    Args:
        paths: files that a verb will write, each of its own.
        read: files that it reads, none of which may be written over.

    Raises:
        KernelpackError: a folder is not there or may not be written to, or a path is a bundle's, no
            file's, one that is read, or named twice.

    """
    taken = {path.resolve() for path in read}
    for path in paths:
        folder = path.absolute().parent
        if not folder.is_dir():
            raise KernelpackError("there is no such folder", where=str(folder))
        if not os.access(folder, os.W_OK):
            raise KernelpackError("the folder cannot be written to", where=str(folder))
        is_other = path.suffix == ".kpk" or (path.exists() and not path.is_file())
        if is_other or path.resolve() in taken:
            hint = "give each output a file of its own"
            raise KernelpackError("is not written over", where=str(path), hint=hint)
        taken.add(path.resolve())


def write(path: Path, text: str) -> None:
    """Put text at `path`, whole or not at all, and say so.

    Raises:
        KernelpackError: the system refused; says why.

    """
    publish(path, text.encode("utf-8", "surrogateescape"))
    console.say(f"wrote {path}")
