"""`kernelpack list`: the variants that would be built."""

from pathlib import Path

import click

from kernelpack.build.keep import parse_keep
from kernelpack.cli import choices, console
from kernelpack.manifest.expand import Exclusion, excluded, expand
from kernelpack.manifest.schema import load


@click.command("list")
@choices.manifests
@choices.targets
@choices.keep
@click.option("--explain", is_flag=True, help="Also say which combinations are not built, and why.")
@choices.as_json
def command(
    manifests: tuple[Path, ...],
    targets: tuple[str, ...],
    keep: str,
    explain: bool,
    as_json: bool,
) -> None:
    wanted, kept = choices.arches(targets), parse_keep(keep)
    loaded = [load(path) for path in choices.manifest_paths(manifests)]
    ids = [v.id for m in loaded for v in expand(m, wanted) if kept(v.id)]
    exclusions = [e for m in loaded for e in excluded(m, wanted)] if explain else []
    lost = [{"combination": combination(e), "reason": e.reason} for e in exclusions]
    if as_json:
        console.print_json({"variants": ids, "excluded": lost})
        return
    for line in [*ids, *(f"not {e['combination']}: {e['reason']}" for e in lost)]:
        print(line)
    console.say(f"{len(ids)} variants" + (f", {len(exclusions)} excluded" if explain else ""))


command.help = "Show the variants that would be built, or why a combination is not."


def combination(exclusion: Exclusion) -> str:
    """The name the variant would have had."""
    axes = "".join(f",{name.lower()}={value}" for name, value in exclusion.axes)
    return f"{exclusion.kernel}[arch={exclusion.arch}{axes}]"
