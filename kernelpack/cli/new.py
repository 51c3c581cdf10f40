"""`kernelpack new`: the folder of a kernel of one's own, with one that works in it."""

import keyword
import re
import shutil
from pathlib import Path
from tempfile import mkdtemp

import rich_click as click

from kernelpack.cli import choices, console, settings
from kernelpack.errors import KernelpackError
from kernelpack.kernels.folder import STEM, Folder, folders
from kernelpack.kernels.registry import KERNELS

LIKE = "silu"
_READABLE = 0o755


def _examples() -> tuple[Folder, ...]:
    """The kernels that a new one may begin as."""
    return folders([settings.sources() / "examples" / "kernels"])


@click.command(
    "new", epilog=choices.examples("kernelpack new rms_norm", "kernelpack new rope --into kernels")
)
@click.argument("name")
@click.option(
    "--into",
    type=choices.SomePath(path_type=Path, file_okay=False, exists=True),
    default=Path(),
    help="The folder to make it in; this one if left out.",
)
@click.option(
    "--like",
    default=LIKE,
    show_default=True,
    metavar="EXAMPLE",
    help="The example that it begins as: rms_norm, silu, silu_mul_fp8.",
)
@choices.as_json
def command(name: str, into: Path, like: str, as_json: bool) -> None:
    """Make a kernel of your own: a folder with its manifest, template and oracle.

    The kernel in it builds, verifies and runs as it stands, for sm_100a and sm_90a: change it bit
    by bit, and verify after each.
    """
    _check_name(name)
    made = Folder(into / name)
    if made.path.exists():
        raise KernelpackError("is there already", where=str(made.path), hint="give another name")
    try:
        _write(_example(like), made)
    except OSError as error:  # it names a folder that is not to be seen
        what, hint = f"cannot be made: {error.strerror}", "name another folder with `--into`"
        raise KernelpackError(what, where=str(made.path), hint=hint) from error
    files = (made.manifest, made.template, made.oracle)
    if as_json:
        console.print_json({"kernel": name, "files": [str(path) for path in files]})
        return
    for path in files:
        print(path)
    console.say(f"next: kernelpack verify {made.path}")
    console.say(f"      kernelpack build {made.path} -o {name}.kpk")
    console.say(f"      kernelpack run {name} --bundle {name}.kpk --kernels {made.path}")


def _check_name(name: str) -> None:
    """Refuse what cannot be the name of a kernel.

    Raises:
        KernelpackError: it is not a name, or another kernel's.

    """
    if not STEM.fullmatch(name) or keyword.iskeyword(name):
        hint = "lower-case letters, digits and `_`, a letter first, at most 64: rms_norm"
        raise KernelpackError(f"`{name}` is not a valid kernel name", hint=hint)
    if name in KERNELS:
        what = f"`{name}` is the name of an installed kernel"
        raise KernelpackError(what, where=str(KERNELS.place(name)), hint="give another name")


def _example(like: str) -> Folder:
    """The example of a name.

    Raises:
        KernelpackError: there is none.

    """
    known = {folder.stem: folder for folder in _examples()}
    if like not in known:
        what = f"there is no example `{like}`"
        raise KernelpackError(what, where="--like", hint=f"examples: {', '.join(known)}")
    return known[like]


def _write(example: Folder, made: Folder) -> None:
    """The example's three files under another name, all of them or none."""
    word = re.compile(rf"\b{example.stem}\b")
    staged = Path(mkdtemp(prefix=f".{made.stem}-", dir=made.path.parent))
    try:
        inside = Folder(staged)
        for source, target in (
            (example.manifest, made.manifest),
            (example.template, made.template),
            (example.oracle, made.oracle),
        ):
            text = word.sub(made.stem, source.read_text(encoding="utf-8"))
            (inside.path / target.name).write_text(text, encoding="utf-8")
        staged.chmod(_READABLE)
        staged.rename(made.path)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
