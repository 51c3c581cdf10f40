"""`kernelpack diff`: what changed between two bundles."""

from pathlib import Path

import rich_click as click

from kernelpack.bundle.compare import Change, Comparison, compare
from kernelpack.bundle.reader import open_entries
from kernelpack.cli import choices, console


@click.command("diff", epilog=choices.examples("kernelpack diff old.kpk new.kpk"))
@click.argument("old", type=choices.SomePath(path_type=Path))
@click.argument("new", type=choices.SomePath(path_type=Path))
@choices.as_json
def command(old: Path, new: Path, as_json: bool) -> None:
    """Compare two bundles: what came, what went, what grew.

    A line begins with + (came), - (went) or ~ (changed: registers, bytes of memory and of code,
    the launch).
    """
    found = compare(open_entries(old), open_entries(new))
    if as_json:
        console.print_json(_record(found))
        return
    for entry in found.removed:
        console.show(f"- {entry.id}")
    for entry in found.added:
        console.show(f"+ {entry.id}")
    for change in found.changed:
        console.show(f"~ {change.id}: {_words(change)}")
    console.say(
        f"{len(found.added)} came, {len(found.removed)} went, {len(found.changed)} changed, "
        f"{found.same} the same; {console.size(found.old_bytes)} to {console.size(found.new_bytes)}"
    )


def _words(change: Change) -> str:
    told = [f"{name} {old} to {new}" for name, (old, new) in change.numbers.items()]
    if not told and change.old == change.new:
        return "another launch, cost or guard"
    return ", ".join(told) or "other machine code of the same size"


def _record(found: Comparison) -> dict[str, object]:
    return {
        "added": [entry.id for entry in found.added],
        "removed": [entry.id for entry in found.removed],
        "changed": {change.id: dict(change.numbers) for change in found.changed},
        "same": found.same,
        "old_bytes": found.old_bytes,
        "new_bytes": found.new_bytes,
    }
