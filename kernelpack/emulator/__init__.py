"""PTX on the CPU: what a kernel computes, and what is wrong with it.

`run.run(program, plan, memory)` runs a launch that is described like one for a GPU;
`launch(ptx, name, grid, block, *arguments)` runs one on numpy arrays, a `Struct` by value, tensor
maps by description (`ArrayMap`) and addresses in a `GlobalMemory`; `schedules(cluster, warps)` are
the interleavings under which a kernel must be right. All are loaded on first use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelpack.emulator.arguments import ArrayMap, Struct
    from kernelpack.emulator.arrays import launch
    from kernelpack.emulator.machine.memory import GlobalMemory
    from kernelpack.emulator.schedule import schedules

__all__ = ["ArrayMap", "GlobalMemory", "Struct", "launch", "schedules"]
_HOMES = {
    "ArrayMap": "arguments",
    "GlobalMemory": "machine.memory",
    "Struct": "arguments",
    "launch": "arrays",
    "schedules": "schedule",
}


def __getattr__(name: str) -> object:
    """Load a name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
