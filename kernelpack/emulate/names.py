"""Kernels' names as people read them, and patterns of either kind of name.

The C++ runtime library demangles names, which the stand-in needs too;
where the library has another name, the names stay as they are.
"""

import ctypes
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache

_LIBRARY = "libstdc++.so.6"
_NAMED = 72
"""Characters of a kernel's name that are shown."""


def matches(name: str, pattern: str) -> bool:
    """Whether a pattern is of a kernel's name, as the compiler has it or as people do."""
    return fnmatchcase(name, pattern) or fnmatchcase(readable(name), pattern)


def shorten(name: str) -> str:
    """A kernel's readable name, without its parameters, and no longer than a line."""
    text = _without_parameters(readable(name).removeprefix("void "))
    if len(text) <= _NAMED:
        return text
    return f"{text[: _NAMED - 16]}…{text[-15:]}"


@cache
def readable(name: str) -> str:
    """The C++ name of a mangled one; other names as they are."""
    demangle = _demangler()
    if demangle is None or not name.startswith("_Z"):
        return name
    return demangle(name) or name


@cache
def _demangler() -> Callable[[str], str] | None:
    """`abi::__cxa_demangle`."""
    try:
        library = ctypes.CDLL(_LIBRARY)
        function, free = library["__cxa_demangle"], ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return None
    function.restype, free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]

    def demangle(name: str) -> str:
        status = ctypes.c_int()
        found = function(name.encode(), None, None, ctypes.addressof(status))
        text = ctypes.string_at(found).decode(errors="replace") if found else ""
        free(found)
        return text

    return demangle


def _without_parameters(text: str) -> str:
    """A name without the list of parameters at its end."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            return text[:at] if text.endswith(")") else text
    return text
