"""From a file to a library of kernels: find the bundle, check the driver against it, open both."""

from collections.abc import Sequence
from functools import cache
from os import PathLike
from pathlib import Path

from kernelpack.bundle.discover import find
from kernelpack.bundle.joined import Joined, join
from kernelpack.bundle.provenance import floor
from kernelpack.bundle.reader import Bundle, open_entries
from kernelpack.bundle.signature import Trust, trusted
from kernelpack.errors import BundleError, DriverError
from kernelpack.load.library import Library
from kernelpack.load.overlay import check_devices, overlay_of
from kernelpack.runtime.driver import Driver, connect

__all__ = ["Library", "default", "load"]


Paths = Path | str | Sequence[Path | str]
"""A bundle, or several that are taken together."""


def load(
    path: Paths | None = None,
    *,
    driver: Driver | None = None,
    trust: Trust | None = None,
    tuned: Path | str | None = None,
) -> Library:
    """Open a bundle for the GPUs of this process. No kernel is loaded yet.

    Args:
        path: the bundle, or several as one; None takes all that are installed as packages.
        driver: the driver to use; None connects to libcuda.
        trust: files of public keys, one of whose owners must have signed each bundle; checked
            before anything else is read of it. None: nobody need have.
        tuned: a file of times that `kernelpack tune` measured, which choose in place of the
            manifests' costs where they were measured, and between.

    Raises:
        BundleError: none is installed, a file is not a sound bundle, or is not signed as asked; or
            the times are of another device or of other machine code.
        DriverError: there is no driver, or it is older than a bundle's toolchain.

    """
    bundles = _open(path, trust)
    driver = driver or connect()
    for bundle in bundles:
        _check_floor(bundle, driver)
    if tuned is None:
        return Library(join(bundles), driver)
    joined = join(bundles)
    overlay = overlay_of(joined, Path(tuned))
    check_devices(overlay, map(driver.device, range(driver.device_count())), Path(tuned))
    return Library(joined, driver, overlay)


def open_without_driver(
    path: Paths | None = None, *, trust: Trust | None = None
) -> Bundle | Joined:
    """Open a bundle where no GPU is needed, such as for the emulator; see `load`.

    Raises:
        BundleError: none is installed, a file is not a sound bundle, or is not signed as asked.

    """
    return join(_open(path, trust))


def _open(path: Paths | None, trust: Trust | None) -> list[Bundle]:
    keys = None if trust is None else trusted(trust)
    return [open_entries(each, keys) for each in _paths(path)]


def _paths(path: Paths | None) -> Sequence[Path]:
    """Which bundles are meant.

    Raises:
        BundleError: what was given is not a path, or none is installed.

    """
    if path is None:
        return installed()
    if path in ((), []):
        raise BundleError("no bundle is named", hint="give a path, or none for the installed ones")
    given: Sequence[object] = path if isinstance(path, list | tuple) else [path]
    for each in given:
        if not isinstance(each, str | PathLike):
            what = f"the path of a bundle is a {type(each).__name__}"
            raise BundleError(what, hint="give a `str` or a `pathlib.Path`, or a list of them")
    return [Path(each) for each in given if isinstance(each, str | PathLike)]


@cache
def default() -> Library:
    """The installed bundles, opened once: what an op uses that is given no library."""
    return load()


def installed() -> tuple[Path, ...]:
    """Every installed bundle.

    Raises:
        BundleError: there is none.

    """
    paths = find()
    if not paths:
        raise BundleError(
            "no kernel bundle is installed",
            hint="`pip install` a wheel of kernels (`kernelpack wheel` makes them), or make a "
            "bundle with `kernelpack build -o X.kpk` and give its path: "
            "`kernelpack.load('X.kpk')`, `--bundle X.kpk`",
        )
    return paths


def _check_floor(bundle: Bundle, driver: Driver) -> None:
    release = bundle.provenance.release
    oldest = floor(release, str(bundle.path))
    if driver.version < oldest:
        raise DriverError(
            f"built with CUDA {release}, which needs a driver of CUDA {oldest // 1000}.0 or newer; "
            f"found a {driver}",
            where=str(bundle.path),
            hint="update the NVIDIA driver, or use a bundle built with `--toolchain cuda-12.9`",
        )
