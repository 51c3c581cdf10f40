"""`kernelpack config`: a compiler's options for the C++ loader."""

import shlex
from pathlib import Path

import rich_click as click

import kernelpack
from kernelpack.cli import choices

PACKAGE = Path(kernelpack.__file__).parent
LIBRARIES = ("-lzstd", "-ldl", "-pthread")
"""The loader's libraries: zstd, and what opens libcuda when a program connects."""


@click.command(
    "config", epilog=choices.examples("g++ server.cpp $(kernelpack config --cflags --libs)")
)
@click.option("--cflags", is_flag=True, help="Options for the compiler.")
@click.option("--libs", is_flag=True, help="Options for the linker.")
@click.option("--cmakedir", is_flag=True, help="The folder of CMake's package file.")
def command(cflags: bool, libs: bool, cmakedir: bool) -> None:
    """Say how to compile and link a program that uses the C++ loader.

    It prints its answer on one line: `g++ server.cpp $(kernelpack config --cflags --libs)`.
    """
    words = [
        *((f"-I{PACKAGE / 'include'}",) if cflags else ()),
        *(LIBRARIES if libs else ()),
        *((str(PACKAGE / "cmake"),) if cmakedir else ()),
    ]
    if not words:
        raise click.UsageError("say what to print: --cflags, --libs, --cmakedir")
    print(shlex.join(words))
