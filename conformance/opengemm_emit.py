"""Have opengemm write a kernel's source: `opengemm_emit.py SOURCES ELEMENT SIZE PATH`.

opengemm imports torch for its dtypes' names alone when it emits; an empty torch stands in for it.
"""

import sys
import types
from importlib import import_module
from pathlib import Path

_ELEMENTS = {
    "bf16": {"atype": "bf16"},
    "e4m3": {"atype": "e4m3"},
    "nvfp4": {"atype": "e2m1", "sftype": "ue4m3"},
}


class _Empty(types.ModuleType):
    """A module in which every name is such a module."""

    def __getattr__(self, name: str) -> "_Empty":
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Empty(name)
        setattr(self, name, made)
        return made


def main(sources: str, element: str, size: str, path: str) -> None:
    """Write PATH and the header beside it."""
    sys.modules["torch"] = _Empty("torch")
    sys.path.insert(0, sources)
    opengemm, side = import_module("opengemm"), int(size)
    stem = Path(path).with_suffix("")
    opengemm.emit_kernel(m=side, n=side, k=side, file=stem, **_ELEMENTS[element])


if __name__ == "__main__":
    main(*sys.argv[1:])
