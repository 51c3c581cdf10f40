"""What tests of all kernels need to know of each: a module a kernel, called by its stem."""

from importlib import import_module
from types import ModuleType


def known(stem: str) -> ModuleType:
    """UNITS: target → instructions of every variant; SIZES: size → what a problem's may be."""
    return import_module(f"tests.kernels.known.{stem}")
