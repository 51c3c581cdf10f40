"""Functions that do kernels' work: a Python file whose KERNELS map name patterns to them."""

import runpy
from collections.abc import Mapping
from pathlib import Path

from kernelpack.emulate.options import Native
from kernelpack.errors import KernelpackError

_HINT = 'KERNELS = {"pattern": function}; a function is given device memory and the parameters'


def load(path: Path) -> Mapping[str, Native]:
    """Run a file; its KERNELS.

    Raises:
        KernelpackError: it is not Python, or has no such dictionary. Its own exceptions pass.

    """
    try:
        found = runpy.run_path(str(path)).get("KERNELS")
    except (SyntaxError, UnicodeDecodeError) as error:
        raise KernelpackError(f"not Python: {error}", where=str(path)) from error
    if not isinstance(found, Mapping) or not all(map(_is_native, found.items())):
        raise KernelpackError(
            "no KERNELS that map patterns to functions", where=str(path), hint=_HINT
        )
    return found


def _is_native(item: tuple[object, object]) -> bool:
    return isinstance(item[0], str) and callable(item[1])
