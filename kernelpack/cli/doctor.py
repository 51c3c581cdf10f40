"""`kernelpack doctor`: what was found on this machine, and what can be done with it."""

import os
import platform
import shutil
from collections.abc import Callable
from importlib import import_module

import rich_click as click

from kernelpack import __version__
from kernelpack.bundle.discover import find as installed_bundles
from kernelpack.cache.location import default_root
from kernelpack.cli import choices, console, settings
from kernelpack.errors import DriverError, KernelpackError, install_extra
from kernelpack.machine_code.disassembler import find as find_disassembler
from kernelpack.runtime.driver import connect
from kernelpack.spec.arch import TARGETS, Capability

TOOLCHAINS = (
    ("cuda-13.4", "nvrtc"),
    ("cuda-13.4", "nvcc"),
    ("cuda-12.9", "nvrtc"),
    ("system", "nvcc"),
)
"""The common choices of `build --toolchain --front-end`."""


@click.command(
    "doctor",
    epilog=choices.examples(
        "kernelpack doctor",
        "kernelpack doctor --gpu && kernelpack run lora_shrink_qkv --bundle kernels.kpk",
    ),
)
@click.option("--gpu", "gpu_only", is_flag=True, help="Only exit: 0 if a GPU runs kernels, else 1.")
@choices.as_json
def command(gpu_only: bool, as_json: bool) -> int:
    """Say which toolchains, driver and GPUs were found, and what works here."""
    driver, gpus = _driver_and_gpus()
    if gpu_only:
        return 0 if any(runs for _, runs in gpus) else 1
    facts = {
        "kernelpack": f"{__version__}, Python {platform.python_version()}",
        **{f"{name} ({end})": _answer(_toolchain(name, end)) for name, end in TOOLCHAINS},
        "nvdisasm": str(find_disassembler() or "none (build and check do not lint without it)"),
        "host g++": shutil.which("g++") or "none (the nvcc front end and `emulate` need it)",
        "emulator": _answer(_engine),
        "driver": driver,
        **{f"GPU {i}": f"{name}; runs {runs or 'nothing'}" for i, (name, runs) in enumerate(gpus)},
        "installed bundles": _answer(_bundles),
        **_environment(),
    }
    if as_json:
        console.print_json(facts)
    else:
        console.print_facts(facts)
    return 0


def targets_of(capability: Capability) -> str:
    """The targets whose machine code a device of this capability runs."""
    return ", ".join(name for name, row in TARGETS.items() if capability in row.capabilities)


def _driver_and_gpus() -> tuple[str, list[tuple[str, str]]]:
    """The driver's lines, and each GPU with the targets that it runs."""
    try:
        driver = connect()
        found = [driver.device(ordinal) for ordinal in range(driver.device_count())]
    except DriverError as error:
        return f"none ({error.what})", []
    return str(driver), [(str(device), targets_of(device.capability)) for device in found]


def _toolchain(name: str, front_end: str) -> Callable[[], str]:
    def look() -> str:
        root = settings.read().toolkit
        found = import_module("kernelpack.toolchain.locate").find(name, front_end, root=root)
        parts = ", ".join(f"{_short(part)} {version}" for part, version in found.versions.items())
        return f"builds {', '.join(TARGETS)}; {parts}"

    return look


def _short(part: str) -> str:
    """A wheel's name without what all of them have."""
    return part.removeprefix("nvidia-").removeprefix("cuda-").removesuffix("-cu12")


def _engine() -> str:
    """The emulator's compiled engine: what compiles it, and whether it is there already."""
    compiled = import_module("kernelpack.emulator.core.compiled")
    found = compiled.compiler()
    is_kept = compiled.is_kept(default_root())
    when = "compiled" if is_kept else "not compiled yet, takes a minute at its first use"
    return f"{when}; by {' '.join(found)}"


def _bundles() -> str:
    return ", ".join(map(str, installed_bundles())) or "none"


def _answer(look: Callable[[], str]) -> str:
    """The findings, or why there are none."""
    try:
        return look()
    except KernelpackError as error:
        return "no: " + ": ".join(filter(None, (error.where, error.what)))
    except ModuleNotFoundError as error:
        return f"no: `{error.name}` is not installed; {install_extra('build')}"


def _environment() -> dict[str, str]:
    found = settings.read()
    kernels = os.pathsep.join(map(str, found.kernels))
    values = (found.cache_dir, found.remote_cache, found.bundle, kernels, found.cuda_home)
    told = [str(value) if value else "none" for value in values]
    return dict(zip(settings.VARIABLES, told, strict=True))
