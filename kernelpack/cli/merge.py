"""`kernelpack merge`: bundles, such as the shards of a build → one bundle and its PTX twin."""

from pathlib import Path

import rich_click as click

from kernelpack.build.output import check_output
from kernelpack.bundle.merge import check_inputs, merge
from kernelpack.cli import choices, console
from kernelpack.spec.counted import counted


@click.command("merge", epilog=choices.examples("kernelpack merge 1.kpk 2.kpk -o all.kpk"))
@click.argument(
    "bundles", nargs=-1, required=True, type=choices.SomePath(path_type=Path), metavar="BUNDLE..."
)
@choices.output
@choices.as_json
def command(bundles: tuple[Path, ...], output: Path, as_json: bool) -> None:
    """Make one bundle of several, such as the shards of a build.

    The result has the bytes of one build of everything, in whatever order the bundles are named;
    the PTX of each, X.ptx.kpk, must lie beside it. Bundles that have an entry in common, or were
    made with different compilers or sources, are refused, and so is a build with a shard missing.
    """
    check_output(output)
    check_inputs(bundles)
    console.say(f"packing the entries of {counted(len(bundles), 'bundle')}")
    count, size = merge(bundles, output), output.stat().st_size
    if as_json:
        paths = list(map(str, bundles))
        told = {"bundle": str(output), "of": paths, "entries": count, "bytes": size}
        console.print_json(told)
    entries = counted(count, "entry", "entries")
    of = f"{entries} of {counted(len(bundles), 'bundle')}"
    console.say(f"wrote {output}: {of} ({console.size(size)})")
