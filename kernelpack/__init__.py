"""kernelpack: CUDA kernels built ahead of time into one cubin bundle, launched with no compiler.

Importing the package loads nothing but this file: no driver, no template engine, no CLI.
Public names are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelpack.load.load import Library, load

__version__ = "0.1.0"
__all__ = ["Library", "__version__", "kv", "load", "ops"]

_PUBLIC = {"load": "kernelpack.load.load", "Library": "kernelpack.load.load"}


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    if name in ("kv", "ops"):
        return import_module(f"kernelpack.{name}")
    raise AttributeError(f"module 'kernelpack' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
