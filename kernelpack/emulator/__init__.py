"""PTX on the CPU: what a kernel computes, and what is wrong with it.

`run.run(program, plan, memory)` runs a launch that is described like one for a GPU;
`launch(ptx, name, grid, block, *arguments)` runs one on numpy arrays, and is loaded on first use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelpack.emulator.arrays import launch

__all__ = ["launch"]


def __getattr__(name: str) -> object:
    """Load `launch` when it is first asked for."""
    if name != "launch":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return import_module("kernelpack.emulator.arrays").launch
