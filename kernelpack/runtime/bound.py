"""A call of libcuda with its arguments, held ready: by the extension where it is installed.

The extension, `kernelpack_launch`, is a package of its own (`extension/`), so that kernelpack
itself holds no machine code; ctypes makes the same call, more slowly. See ADR 0013.
"""

import ctypes
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

Call = Callable[[], int]
"""Makes a call; its result code."""

Bind = Callable[[int, int, int, int], Call]
"""From the address of a function, and its first three arguments, which are addresses too: its call.
The fourth argument is NULL. Their targets must live as long as the call runs."""

_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int, *(ctypes.c_void_p,) * 4)


def bind_by_ctypes(function: int, first: int, second: int, third: int) -> Call:
    """The call, made by ctypes."""
    return partial(_PROTOTYPE(function), first, second, third, None)


def fastest_bind() -> Bind:
    """The extension's way where it is installed, else that of ctypes."""
    found = extension("bind")
    return bind_by_ctypes if found is None else found.bind


def extension(name: str) -> Any:  # noqa: ANN401 - a module that may not be there
    """The extension, if one is installed that has a function."""
    try:
        found = import_module("kernelpack_launch")
    except ImportError:
        return None
    return found if hasattr(found, name) else None
