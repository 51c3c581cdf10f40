"""Bundles verified on a GPU: one after another, each with its record."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kernelpack.cli import choices, console
from kernelpack.cli.progress import watch
from kernelpack.device.report import DeviceReport, record, write_record
from kernelpack.device.verify import Options as DeviceOptions
from kernelpack.device.verify import verify
from kernelpack.verify.report import summary

__all__ = ["DeviceOptions", "verify_on_gpu"]


def verify_on_gpu(bundles: Sequence[Path], asked: DeviceOptions, *, as_json: bool) -> int:
    """Verify bundles and print the results; the exit code."""
    reports = []
    for bundle in bundles:
        beside = choices.beside(bundle)
        choices.check_written(beside.parent / f"{beside.stem}.verified.json")
        with watch() as progress:
            found = verify(replace(asked, bundle=bundle), progress)
        reports.append(replace(found, beside=beside))
        console.say(f"wrote {write_record(reports[-1])}")
    _tell(reports, as_json=as_json)
    return 0 if all(report.is_right for report in reports) else 1


def _tell(reports: Sequence[DeviceReport], *, as_json: bool) -> None:
    if as_json:
        console.print_json([record(report) for report in reports])
        return
    for report in reports:
        console.show(f"{report.bundle.name} on {report.device}, {report.driver}")
        for line in summary(report):
            console.show(line)
