"""`kernelpack doctor`: what was found on this machine, and what can be done with it."""

import sys
from collections.abc import Callable
from importlib import import_module

import click

from kernelpack.bundle.discover import find as installed_bundles
from kernelpack.cli import choices, console, settings
from kernelpack.errors import DriverError, KernelpackError
from kernelpack.runtime.driver import connect
from kernelpack.spec.arch import FAMILIES, Capability

TOOLCHAINS = (("cuda-13.4", "nvrtc"), ("cuda-13.4", "nvcc"), ("cuda-12.9", "nvrtc"))


@click.command("doctor")
@click.option("--gpu", "gpu_only", is_flag=True, help="Exit 0 if a GPU can run kernels, else 1.")
@choices.as_json
def command(gpu_only: bool, as_json: bool) -> int:
    devices, driver = _devices()
    if gpu_only:
        return 0 if any(runs for _, runs in devices) else 1
    facts = {"python": sys.version.split()[0], **_toolchains(), "driver": driver}
    facts |= {
        f"GPU {i}": f"{name}; runs {runs or 'nothing'}" for i, (name, runs) in enumerate(devices)
    }
    facts |= {"bundles installed": ", ".join(map(str, installed_bundles())) or "none"}
    facts |= _environment()
    if as_json:
        console.print_json(facts)
    else:
        console.print_facts(facts)
    return 0


command.help = "Say which toolchains, driver and GPU were found, and what can be built and run."


def targets_of(capability: Capability) -> str:
    """The targets whose machine code a device of this capability runs."""
    return ", ".join(name for name, runs_on in FAMILIES.items() if capability in runs_on)


def _devices() -> tuple[list[tuple[str, str]], str]:
    """Each GPU with the targets it runs, and what is to be said of the driver."""
    try:
        driver = connect()
        found = [driver.device(ordinal) for ordinal in range(driver.device_count())]
    except DriverError as error:
        return [], f"none ({error.what})"
    return [(str(device), targets_of(device.capability)) for device in found], str(driver)


def _toolchains() -> dict[str, str]:
    return {f"{name} ({end})": _answer(_toolchain(name, end)) for name, end in TOOLCHAINS}


def _toolchain(name: str, front_end: str) -> Callable[[], str]:
    def look() -> str:
        found = import_module("kernelpack.toolchain.locate").find(name, front_end)
        parts = ", ".join(f"{part} {version}" for part, version in found.versions.items())
        return f"builds {', '.join(FAMILIES)}; {parts}"

    return look


def _answer(look: Callable[[], str]) -> str:
    try:
        return look()
    except KernelpackError as error:
        return f"no: {error.what}"
    except ImportError as error:
        return f"no: the builder is not installed ({error.name}); pip install 'kernelpack[build]'"


def _environment() -> dict[str, str]:
    found = settings.read()
    values = (found.cache_dir, found.bundle, found.cuda_home)
    told = [str(value) if value else "not set" for value in values]
    return dict(zip(settings.VARIABLES, told, strict=True))
