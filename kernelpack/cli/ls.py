"""`kernelpack ls`: a bundle's entries."""

from dataclasses import asdict
from pathlib import Path

import rich_click as click

from kernelpack.bundle.entry import Record
from kernelpack.bundle.reader import Bundle, open_entries
from kernelpack.cli import choices, console
from kernelpack.spec.counted import counted
from kernelpack.spec.filter import filtered

HEADER = ("entry", "registers", "static shared", "dynamic shared", "cubin", "sha256")


@click.command("ls", epilog=choices.examples("kernelpack ls kernels.kpk -k sm_90a"))
@choices.bundle
@choices.keep
@choices.as_json
def command(bundle: Path, keep: str, as_json: bool) -> None:
    """List a bundle's entries.

    With registers of a thread, shared memory and machine code in bytes, and the digest of the
    machine code. Static shared memory is the cubin's own; dynamic is what a launch asks for on top,
    an expression where it depends on the problem (null in JSON for a target of a later version).
    """
    opened = open_entries(bundle)
    records, dynamic = filtered(opened.records(), keep), _dynamic_shared_bytes(opened)
    if as_json:
        console.print_json([_record(r, dynamic.get(r.id)) for r in records])
        return
    rows = [
        (r.id, r.registers, r.shared_bytes, dynamic.get(r.id, "?"), r.image_bytes, r.image_digest)
        for r in records
    ]
    console.print_table(HEADER, [(*row, sha256[:12]) for *row, sha256 in rows])
    console.say(counted(len(records), "entry", "entries"))


def _dynamic_shared_bytes(bundle: Bundle) -> dict[str, int | str]:
    """The dynamic memory of each entry's launch, by id: bytes, or an expression."""
    asked = {variant.id: variant.launch.shared_bytes for variant in bundle.variants()}
    return {i: str(e) if e.constant is None else e.constant for i, e in asked.items()}


def _record(record: Record, dynamic_shared_bytes: int | str | None) -> dict[str, object]:
    fields = asdict(record)
    shared = {
        "static_shared_bytes": fields.pop("shared_bytes"),
        "dynamic_shared_bytes": dynamic_shared_bytes,
    }
    return fields | shared
