"""`kernelpack ls`: a bundle's entries."""

from dataclasses import asdict
from pathlib import Path

import rich_click as click

from kernelpack.build.keep import kept
from kernelpack.bundle.reader import open_entries
from kernelpack.cli import choices, console


@click.command("ls")
@choices.bundle
@choices.keep
@choices.as_json
def command(bundle: Path, keep: str, as_json: bool) -> None:
    """List a bundle's entries.

    With registers of a thread, static shared memory and machine code in bytes, and the digest of
    the machine code.
    """
    records = kept(open_entries(bundle).records(), keep)
    if as_json:
        console.print_json([asdict(record) for record in records])
        return
    console.print_table(
        ("entry", "registers", "shared", "cubin", "sha256"),
        [(r.id, r.registers, r.shared_bytes, r.image_bytes, r.image_digest[:12]) for r in records],
    )
    console.say(f"{len(records)} entries")
