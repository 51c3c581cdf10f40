"""`kernelpack check`: a bundle checked against its own index; runs nothing, needs no GPU."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from kernelpack.check.check import Report, check
from kernelpack.cli import choices, console, settings
from kernelpack.cli.builder import needs_builder
from kernelpack.spec.counted import counted

if TYPE_CHECKING:
    from kernelpack.check.rebuild import Rebuilt


def _percent(context: click.Context, option: click.Parameter, given: str | None) -> float | None:
    """The number of `5%` or `5`."""
    if given is None:
        return None
    number = given.removesuffix("%")
    if not number.replace(".", "", 1).isdecimal() or not 0 < float(number) <= 100:
        raise click.BadParameter(f"`{given}` is not a percentage", context, option)
    return float(number)


@click.command(
    "check",
    epilog=choices.examples(
        "kernelpack check kernels.kpk",
        "kernelpack check kernels.kpk --key key.pub.pem --rebuild 5%",
    ),
)
@choices.bundle
@click.option(
    "--key",
    "keys",
    multiple=True,
    type=choices.SomePath(path_type=Path, dir_okay=False),
    help="A public key of Ed25519, PEM: the bundle must be signed with it; may be repeated.",
)
@click.option(
    "--rebuild",
    "percent",
    callback=_percent,
    metavar="N%",
    help="Make N% of the entries again, from their sources, and compare them bit by bit.",
)
@click.option(
    "--manifest",
    "manifests",
    multiple=True,
    type=choices.SomePath(path_type=Path, dir_okay=False, exists=True),
    help="To rebuild from; may be repeated. kernelpack's own if left out.",
)
@choices.templates
@choices.kernels
@choices.as_json
def command(
    bundle: Path,
    keys: tuple[Path, ...],
    percent: float | None,
    manifests: tuple[Path, ...],
    templates: Path | None,
    kernels: tuple[Path, ...],
    as_json: bool,
) -> int:
    """Check a bundle: structure, digests, and machine code against its index.

    Every byte is read: digests, each cubin's ELF (target, entry, where its parameters lie,
    registers), known mistakes of the compiler that wrote it, and, where nvdisasm is installed
    (kernelpack[lint]), rules that no compiler checks. Nothing is run; numbers are the
    question of `run`. `--rebuild` needs the builder, the toolchain that the bundle names, and its
    sources as they were.
    """
    report = check(bundle, keys or None)
    again = None
    if percent and report.is_sound:
        again = _rebuild(bundle, choices.manifest_paths(manifests, kernels), templates, percent)
    findings = (*report.findings, *(again.findings if again else ()))
    if as_json:
        counts = {"entries": report.entries, "rebuilt": again and again.entries}
        lint = {"unlinted": report.unlinted}
        told = [asdict(finding) for finding in findings]
        console.print_json({"bundle": str(bundle), **counts, "findings": told, **lint})
    else:
        for text in (text for finding in findings for text in console.told(finding)):
            console.show(text)
        if report.unlinted:
            console.say(report.unlinted)
        console.say(f"{bundle}: {_verdict(report)}{_verdict_again(again)}")
    return 0 if report.is_sound and not (again and again.findings) else 1


def _verdict(report: Report) -> str:
    if report.entries is None:
        return "refused"
    entries = counted(report.entries, "entry", "entries")
    return f"{entries}, {'sound' if report.is_sound else 'not sound'}"


def _verdict_again(again: "Rebuilt | None") -> str:
    """The line of a rebuild, after that of the bundle itself."""
    if again is None:
        return ""
    if not again.entries:
        return "; not rebuilt"
    return f"; {again.entries} rebuilt, {len(again.findings) or 'none'} other than the bundle's"


def _rebuild(
    bundle: Path, paths: tuple[Path, ...], templates: Path | None, percent: float
) -> "Rebuilt":
    with needs_builder("check --rebuild"):
        from kernelpack.check.rebuild import Sources, rebuild  # noqa: PLC0415 - of the builder

    sources = Sources(
        manifests=paths,
        templates=choices.templates_for(templates, paths),
        kernels=choices.kernels_of(paths),
        cuda_home=settings.read().toolkit,
    )
    return rebuild(bundle, sources, percent)
