"""Which releases of kernelpack run a bundle: a table of what each release reads and calls.

A wheel of kernels asks for such a release when it is installed. The numbers themselves are checked
against each other when a kernel is loaded, whatever was installed: never one version against
another.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from kernelpack import __version__
from kernelpack.bundle.format import MAJOR
from kernelpack.errors import BundleError
from kernelpack.kernels.registry import KERNELS


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release of kernelpack.

    Attributes:
        version: its number.
        major: the major version of the bundle format that it reads.
        abis: the kernel-ABI numbers that its ops call, by stem.

    """

    version: str
    major: int
    abis: Mapping[str, range] = field(default_factory=dict)


PAST: tuple[Release, ...] = ()
"""The releases before this one, the oldest first; whoever raises the version adds its row. Within a
series (0.1, 0.2, …, 1, 2) no release drops a number that an earlier one had."""


@cache
def releases() -> tuple[Release, ...]:
    """With this one, which is what the code says."""
    abis = {stem: kernel.abis for stem, kernel in KERNELS.of_package().items()}
    return (*PAST, Release(version=__version__, major=MAJOR, abis=abis))


Kernels = Mapping[str, tuple[int, ...]]
"""The kernels of a bundle: stem → the ABI numbers that it holds."""


def requirement(major: int, kernels: Kernels, known: tuple[Release, ...] | None = None) -> str:
    """The releases that run a bundle, as a wheel asks for them: `kernelpack>=0.1.0,<0.2`.

    They are the newest ones in a row. A kernel that no release has an op for asks for nothing.

    Raises:
        BundleError: none runs it; says which numbers the bundle has.

    """
    known = known or releases()
    runs = [_runs(release, major, kernels, known) for release in known]
    if not any(runs):
        held = ", ".join(f"{stem} {list(abis)}" for stem, abis in kernels.items())
        what = f"no release of kernelpack runs bundle format {major} with kernel ABIs {held}"
        raise BundleError(what, hint="build the bundle again with this version")
    last = max(index for index, run in enumerate(runs) if run)
    first = max((index + 1 for index in range(last) if not runs[index]), default=0)
    later = known[last + 1 :]
    end = later[0].version if later else _next_series(known[last].version)
    return f"kernelpack>={known[first].version},<{end}"


def _runs(release: Release, major: int, kernels: Kernels, known: tuple[Release, ...]) -> bool:
    ours = {stem for row in known for stem in row.abis}
    called = (set(release.abis.get(stem, ())) & set(kernels[stem]) for stem in ours & set(kernels))
    return release.major == major and all(called)


def _next_series(version: str) -> str:
    """The first version that may drop what this one has: 0.2 after 0.1.0, 2 after 1.4.0."""
    major, minor = map(int, version.split(".")[:2])
    return str(major + 1) if major else f"0.{minor + 1}"
