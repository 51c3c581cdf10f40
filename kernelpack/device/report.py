"""The results of a verification on a GPU, and their record: `X.verified.NAME.json` beside `X.kpk`.

The record has the form of the emulator's (kernelpack/verify/verified.py), and says the device, its
driver and the digest of each machine code in place of the emulator and the PTX.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kernelpack.device.key import runner_version
from kernelpack.device.machine import beside
from kernelpack.runtime.driver import Device
from kernelpack.verify.report import Report
from kernelpack.verify.verified import Record, add, run_record, summed

FORMAT = 1
NOT_PROVEN = (
    "time: `kernelpack bench` measures it",
    "races that this GPU did not lose: `kernelpack verify` without `--on gpu` looks for them",
    "cases beyond those listed, and other devices and drivers",
)
"""What no run on a GPU can prove."""

_VERSIONS = ("format", "root", "device", "driver", "oracle", "runner", "repeats")
_PLAN = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReport(Report):
    """The report of a verification on a GPU.

    Attributes:
        device: the GPU.
        driver: its driver, for people.
        images: the digest of each verified variant's machine code.
        repeats: how often each run was made.

    """

    device: Device
    driver: str
    images: Mapping[str, str] = field(repr=False)
    repeats: int


def record(report: DeviceReport) -> Record:
    """The record of one verification."""
    major, minor = report.device.capability
    device = {
        "name": report.device.name,
        "capability": f"{major}.{minor}",
        "sm_count": report.device.sm_count,
    }
    return summed(
        {
            "format": FORMAT,
            "bundle": report.bundle.name,
            "root": report.root,
            "device": device,
            "driver": report.driver,
            "runner": runner_version(),
            "oracle": report.oracle,
            "repeats": report.repeats,
            "not_proven": list(NOT_PROVEN),
            "entries": {
                variant_id: {
                    "image": report.images[variant_id],
                    "selected_by": report.selecting[variant_id],
                    "plan": _PLAN,
                    "runs": [run_record(outcome) for outcome in runs],
                }
                for variant_id, runs in report.by_variant.items()
            },
        },
        report.ids,
    )


def record_path(bundle: Path, device: Device) -> Path:
    """Where the record of a bundle on a GPU lies: `X.verified.nvidia-h200.json` beside `X.kpk`."""
    return beside(bundle, "verified", device)


def write_record(report: DeviceReport) -> Path:
    """Write the record, added to what it says already of the same bytes, device and driver.

    Raises:
        BundleError: it cannot be written; the earlier one is as it was.

    """
    path = record_path(report.beside or report.bundle, report.device)
    add(path, record(report), report.ids, _VERSIONS)
    return path
