"""`kernelpack check`: a bundle held against its own index; runs nothing, needs no GPU."""

from dataclasses import asdict
from pathlib import Path

import rich_click as click

from kernelpack.check.check import check
from kernelpack.cli import choices, console


@click.command("check")
@choices.bundle
@click.option(
    "--key",
    "keys",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="A public key of Ed25519, PEM: the bundle must be signed with it; may be repeated.",
)
@choices.as_json
def command(bundle: Path, keys: tuple[Path, ...], as_json: bool) -> int:
    """Hold a bundle's structure, digests and machine code against its index.

    Every byte is read: digests, each cubin's ELF (target, entry, parameters, registers), and known
    mistakes of the compiler that wrote it. Nothing is run; numbers are the question of `run`.
    """
    report = check(bundle, keys or None)
    if as_json:
        findings = [asdict(finding) for finding in report.findings]
        console.print_json({"bundle": str(bundle), "entries": report.entries, "findings": findings})
    else:
        for finding in report.findings:
            print(finding)
        verdict = "sound" if report.is_sound else "not sound"
        console.say(f"{bundle}: {report.entries} entries, {verdict}")
    return 0 if report.is_sound else 1
