"""Unmodelled instructions of a program's kernels, found without running anything."""

from collections.abc import Iterator
from pathlib import Path

from kernelpack.emulate import fatbin, program
from kernelpack.emulate.modules import choose
from kernelpack.emulate.names import shorten
from kernelpack.emulator.ptx.parser import parse
from kernelpack.emulator.translate import refusals
from kernelpack.errors import UnsupportedError


def refused(path: Path, capability: tuple[int, int]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each kernel of a host program, or of a file of PTX, and its forms that are not modelled.

    Raises:
        UnsupportedError: it holds no PTX, or none that the device runs.
        PtxError: a text cannot be read.
    """
    images = program.images(path)
    if not images:
        raise UnsupportedError("no kernels inside", where=str(path))
    for image in images:
        module = parse(choose(fatbin.ptx_texts(image), capability))
        for name, entry in module.entries.items():
            yield shorten(name), tuple(map(str, refusals.of_entry(entry)))
