"""The part of the road that a worker walks: a source → PTX → cubin → resources, each made once.

The cache keeps a step's result under the key of its inputs, so of all processes on all machines
that share the cache one makes it. This module is all that a worker imports.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from kernelpack.build.hints import hinted
from kernelpack.build.key import cubin_key, ptx_key
from kernelpack.build.record import Assembled, decode, encode
from kernelpack.cache.key import Key
from kernelpack.cache.store import ContentError, Store
from kernelpack.errors import CompileError
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Cubin, Ptx, Resources, Source
from kernelpack.toolchain.elf import inspect
from kernelpack.toolchain.frontend import compile as compile_source
from kernelpack.toolchain.ptxas import assemble
from kernelpack.toolchain.toolchain import Toolchain

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilers:
    """The steps from a source to resources; a worker must be able to import each by name."""

    compile: Callable[[Source, Toolchain, Arch], Ptx] = compile_source
    assemble: Callable[[Ptx, Toolchain, Arch], Cubin] = assemble
    inspect: Callable[[Cubin, str], Resources] = inspect


COMPILERS = Compilers()
"""The real ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One variant to make, with everything needed to make it."""

    source: Source = field(repr=False)
    arch: Arch
    toolchain: Toolchain
    cache: Path
    compilers: Compilers = COMPILERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A variant's products; `fresh` if a compiler of this very task had a part in them."""

    ptx: Ptx
    assembled: Assembled
    fresh: bool = False


def make(task: Task) -> Product:
    """The product of a task, from the cache as far as it holds it.

    Raises:
        CompileError: a compiler refused; its message says where.
        ToolchainError: a compiler did not run to its end.
        CacheError: the cache cannot keep what was made.

    """
    store = Store(task.cache)
    worked = []

    def work(step: Callable[[], bytes]) -> bytes:
        worked.append(step)
        return step()

    def made(key: Key, decode: Callable[[bytes], T], step: Callable[[], bytes]) -> T:
        held = store.known(key.digest, decode)
        return decode(store.make_once(key.digest, lambda: work(step))) if held is None else held

    ptx = made(_ptx_key(task), partial(_ptx, task), lambda: _compile(task))
    assembled = made(_cubin_key(task, ptx), decode, lambda: _assemble(task, ptx))
    return Product(ptx=ptx, assembled=assembled, fresh=bool(worked))


def cached_product(cache: Store, task: Task) -> Product | None:
    """The product of a task if a cache holds all of it; makes nothing."""
    ptx = cache.known(_ptx_key(task).digest, partial(_ptx, task))
    if ptx is None:
        return None
    assembled = cache.known(_cubin_key(task, ptx).digest, decode)
    return None if assembled is None else Product(ptx=ptx, assembled=assembled)


def store_product(cache: Store, task: Task, product: Product) -> None:
    """Store a product in a cache that may lack it: another machine may have made it."""
    cache.offer(_ptx_key(task).digest, product.ptx.text.encode())
    cache.offer(_cubin_key(task, product.ptx).digest, encode(product.assembled))


def _ptx_key(task: Task) -> Key:
    return ptx_key(task.source, task.toolchain, task.arch)


def _cubin_key(task: Task, ptx: Ptx) -> Key:
    return cubin_key(ptx, task.toolchain, task.arch)


def _ptx(task: Task, text: bytes) -> Ptx:
    try:
        ptx = Ptx(text=text.decode())
    except UnicodeDecodeError as error:
        raise ContentError("the cache holds something else than PTX") from error
    if f".entry {task.source.entry}" not in ptx.text:
        raise ContentError(f"the cache holds something else than PTX of `{task.source.entry}`")
    return ptx


def _compile(task: Task) -> bytes:
    try:
        return task.compilers.compile(task.source, task.toolchain, task.arch).text.encode()
    except CompileError as error:
        raise hinted(error) from error


def _assemble(task: Task, ptx: Ptx) -> bytes:
    cubin = task.compilers.assemble(ptx, task.toolchain, task.arch)
    resources = task.compilers.inspect(cubin, task.source.entry)
    return encode(Assembled(cubin=cubin, resources=resources))
