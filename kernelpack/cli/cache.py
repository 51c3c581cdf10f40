"""`kernelpack cache`: what the cache holds, and how it gets smaller."""

import time
from dataclasses import asdict

import rich_click as click

from kernelpack.cache.location import default_root
from kernelpack.cache.prune import PARTS, Held, held, prune
from kernelpack.cli import choices, console, settings
from kernelpack.spec.counted import counted

DAY_S = 24 * 3600.0


@click.command("cache", epilog=choices.examples("kernelpack cache --prune 30"))
@click.option(
    "--prune",
    "days",
    type=click.FloatRange(0),
    metavar="DAYS",
    help="Remove what was not used for so many days, and what was damaged; 0 removes all.",
)
@choices.as_json
def command(days: float | None, as_json: bool) -> None:
    """Show what the cache holds; make it smaller.

    Removed objects are made again when asked for. The cache lies where KERNELPACK_CACHE_DIR
    says, or in the user's own folder.
    """
    root = settings.read().cache_dir or default_root()
    removed = None if days is None else prune(root, days * DAY_S, time.time())
    parts = held(root)
    total = sum(parts.values(), Held())
    if as_json:
        told = {name: asdict(part) for name, part in parts.items()}
        console.print_json(
            {"folder": str(root), "parts": told, "removed": removed and asdict(removed)}
        )
        return
    rows = [
        (name, part.files, console.size(part.bytes), PARTS[name]) for name, part in parts.items()
    ]
    console.print_table(("part", "files", "size", "holds"), rows)
    if removed:
        console.say(f"removed {_words(removed)}")
    console.say(f"{root}: {_words(total)}")


def _words(some: Held) -> str:
    return f"{counted(some.files, 'file')}, {console.size(some.bytes)}"
