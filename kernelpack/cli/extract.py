"""`kernelpack extract`: a bundle's entries as files that other tools read."""

from pathlib import Path

import rich_click as click

from kernelpack.build.keep import kept
from kernelpack.bundle.extract import extract
from kernelpack.bundle.reader import open_entries
from kernelpack.cli import choices, console
from kernelpack.spec.counted import counted


@click.command("extract")
@choices.bundle
@click.option(
    "-o",
    "--output",
    type=choices.SomePath(path_type=Path, file_okay=False),
    required=True,
    help="The folder; files of the same names are replaced.",
)
@choices.keep
def command(bundle: Path, output: Path, keep: str) -> None:
    """Write a bundle's cubins, descriptions and PTX to a folder.

    PTX is written where the bundle's twin, X.ptx.kpk, lies beside it.
    """
    opened = open_entries(bundle)
    written = extract(opened, output, [record.id for record in kept(opened.records(), keep)])
    for path in written:
        print(path)
    console.say(f"wrote {counted(len(written), 'file')} to {output}")
