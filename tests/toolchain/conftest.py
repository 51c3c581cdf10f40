"""Worker processes that compile: one a toolchain, since a process serves one NVRTC."""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Protocol

import pytest

from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Cubin, Ptx, Source
from kernelpack.toolchain.locate import find
from kernelpack.toolchain.nvcc import HOST_COMPILER
from kernelpack.toolchain.ptxas import assemble
from tests.host import need
from tests.toolchain.samples import compile_in, sample


class Compile(Protocol):
    """Compiles a source in the toolchain's worker, which is in `folder` meanwhile."""

    def __call__(
        self, toolchain: str, front_end: str, arch: str, source: Source, *, folder: Path = Path()
    ) -> Ptx: ...


Make = Callable[[str, str, str], tuple[Ptx, Cubin]]


@pytest.fixture(scope="session")
def compile_in_worker() -> Iterator[Compile]:
    """`(toolchain, front end, arch, source)` → PTX, each toolchain in a process of its own."""
    with ExitStack() as stack:

        @cache
        def worker(toolchain: str) -> ProcessPoolExecutor:
            context = multiprocessing.get_context("spawn")
            return stack.enter_context(ProcessPoolExecutor(1, mp_context=context))

        def compile_it(
            toolchain: str, front_end: str, arch: str, source: Source, *, folder: Path = Path()
        ) -> Ptx:
            if front_end == "nvcc":
                need(HOST_COMPILER)
            tools = find(toolchain, front_end)
            task = worker(toolchain).submit(compile_in, folder, source, tools, Arch(arch))
            return task.result()

        yield compile_it


@pytest.fixture(scope="session")
def make_sample(compile_in_worker: Compile) -> Make:
    """`(toolchain, front end, arch)` → PTX and cubin of the sample, made once a session."""

    @cache
    def make(toolchain: str, front_end: str, arch: str) -> tuple[Ptx, Cubin]:
        ptx = compile_in_worker(toolchain, front_end, arch, sample(arch))
        return ptx, assemble(ptx, find(toolchain, front_end), Arch(arch))

    return make
