"""A bundle and a driver together: kernels that are ready to launch.

`kernelpack.load` is this package as soon as any of it is imported, and the function that people
call; so the package is callable and means `load.load.load`.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from kernelpack.bundle.signature import Trust
    from kernelpack.load.library import Library
    from kernelpack.load.load import Paths
    from kernelpack.runtime.driver import Driver


class _CallablePackage(ModuleType):
    """The package, which opens a bundle when it is called."""

    def __call__(
        self,
        path: "Paths | None" = None,
        *,
        driver: "Driver | None" = None,
        trust: "Trust | None" = None,
        tuned: "Path | str | None" = None,
    ) -> "Library":
        """See `kernelpack.load.load.load`."""
        from kernelpack.load.load import load  # noqa: PLC0415 - importing us loads nothing

        return load(path, driver=driver, trust=trust, tuned=tuned)


sys.modules[__name__].__class__ = _CallablePackage
