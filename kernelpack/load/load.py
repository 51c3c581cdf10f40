"""From a file to a library of kernels: find the bundle, hold the driver against it, open both."""

from functools import cache
from os import PathLike
from pathlib import Path

from kernelpack.bundle.discover import find
from kernelpack.bundle.reader import Bundle, open_entries
from kernelpack.errors import BundleError, DriverError
from kernelpack.load.library import Library
from kernelpack.runtime.driver import Driver, connect

__all__ = ["Library", "default", "load"]


def load(path: Path | str | None = None, *, driver: Driver | None = None) -> Library:
    """Open a bundle for the GPUs of this process. No kernel is loaded yet.

    Args:
        path: the bundle; None takes the one that is installed as a package.
        driver: the driver to use; None connects to libcuda.

    Raises:
        BundleError: no bundle or several are installed, or the file is not a sound bundle.
        DriverError: there is no driver, or it is older than the bundle's toolchain.

    """
    bundle = open_without_driver(path)
    driver = driver or connect()
    _check_floor(bundle, driver)
    return Library(bundle, driver)


def open_without_driver(path: Path | str | None = None) -> Bundle:
    """Open a bundle where no GPU is needed, such as for the emulator.

    Args:
        path: the bundle; None takes the one that is installed as a package.

    Raises:
        BundleError: no bundle or several are installed, or the file is not a sound bundle.

    """
    if not isinstance(path, str | PathLike | None):
        what = f"the path of a bundle is a {type(path).__name__}"
        raise BundleError(what, hint="give a `str` or a `pathlib.Path`")
    return open_entries(installed() if path is None else Path(path))


@cache
def default() -> Library:
    """The installed bundle, opened once: what an op uses that is given no library."""
    return load()


def installed() -> Path:
    """The one installed bundle.

    Raises:
        BundleError: there is none, or more than one.

    """
    paths = find()
    if not paths:
        raise BundleError(
            "no kernel bundle is installed",
            hint="make one with `kernelpack build -o X.kpk` and give its path: "
            "`kernelpack.load('X.kpk')`, `--bundle X.kpk`",
        )
    if len(paths) > 1:
        listed = ", ".join(str(path) for path in paths)
        hint = "say which: `kernelpack.load(path)`"
        raise BundleError(f"{len(paths)} kernel bundles are installed: {listed}", hint=hint)
    return paths[0]


def floor(release: str) -> int:
    """The oldest driver for machine code of a CUDA release, as the driver counts its versions.

    Machine code runs on every driver of the same CUDA major (CUDA Compatibility, minor versions).
    """
    return int(release.split(".", maxsplit=1)[0]) * 1000


def _check_floor(bundle: Bundle, driver: Driver) -> None:
    release = bundle.provenance.release
    oldest = floor(release)
    if driver.version < oldest:
        raise DriverError(
            f"built with CUDA {release}, which needs a driver of CUDA {oldest // 1000}.0 or newer; "
            f"found a {driver}",
            where=str(bundle.path),
            hint="update the NVIDIA driver, or use a bundle built with `--toolchain cuda-12.9`",
        )
