"""`kernelpack extract`: a bundle's entries as files that other tools read."""

from pathlib import Path

import rich_click as click

from kernelpack.bundle.extract import extract
from kernelpack.bundle.reader import open_entries
from kernelpack.cli import choices, console
from kernelpack.spec.counted import counted
from kernelpack.spec.filter import filtered


@click.command(
    "extract", epilog=choices.examples("kernelpack extract kernels.kpk -o folder -k sm_90a")
)
@choices.bundle
@click.option(
    "-o",
    "--output",
    type=choices.SomePath(path_type=Path, file_okay=False),
    required=True,
    help="The folder; files of the same names are replaced.",
)
@choices.keep
@choices.as_json
def command(bundle: Path, output: Path, keep: str, as_json: bool) -> None:
    """Write a bundle's cubins, descriptions and PTX to a folder.

    PTX is written where the bundle's twin, X.ptx.kpk, lies beside it.
    """
    opened = open_entries(bundle)
    written = extract(opened, output, [record.id for record in filtered(opened.records(), keep)])
    if as_json:
        console.print_json({"bundle": str(bundle), "files": [str(path) for path in written]})
        return
    for path in written:
        print(path)
    console.say(f"wrote {counted(len(written), 'file')} to {output}")
