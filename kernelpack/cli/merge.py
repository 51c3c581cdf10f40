"""`kernelpack merge`: bundles, such as the shards of a build → one bundle and its PTX twin."""

from pathlib import Path

import rich_click as click

from kernelpack.build.output import check_output
from kernelpack.bundle.merge import check_inputs, merge
from kernelpack.cli import choices, console
from kernelpack.spec.counted import counted


@click.command("merge")
@click.argument(
    "bundles", nargs=-1, required=True, type=choices.SomePath(path_type=Path), metavar="BUNDLE..."
)
@choices.output
def command(bundles: tuple[Path, ...], output: Path) -> None:
    """Make one bundle of several, such as the shards of a build.

    The result has the bytes of one build of everything, in whatever order the bundles are named;
    the PTX of each, X.ptx.kpk, must lie beside it. Bundles that have an entry in common, or were
    made with different compilers or sources, are refused, and so is a build with a shard missing.
    """
    check_output(output)
    check_inputs(bundles)
    console.say(f"packing the entries of {counted(len(bundles), 'bundle')}")
    entries = counted(merge(bundles, output), "entry", "entries")
    size = console.size(output.stat().st_size)
    console.say(f"wrote {output}: {entries} of {counted(len(bundles), 'bundle')} ({size})")
