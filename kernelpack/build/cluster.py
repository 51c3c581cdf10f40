"""The runner for many machines: tasks go to the workers of a dask cluster, products come back.

A worker runs what a worker process runs here (make.py), with the kernelpack and the compilers of
its own machine, which must be the same as ours. The cache is shared where its folder is there on
both machines; elsewhere each keeps its own. Dask gives the task of a lost worker to another one.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from socket import gethostname
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from kernelpack.build.make import Task
from kernelpack.cache.key import code_digest
from kernelpack.cache.location import default_root
from kernelpack.errors import KernelpackError, ToolchainError, install_extra
from kernelpack.toolchain.locate import Toolchain, find
from kernelpack.workers.pool import Finished, run_here

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")
R = TypeVar("R")

PATIENCE_S = 10
"""How long a scheduler may take to answer."""


def settle(task: Task) -> Task:
    """A task as this machine can do it: with its own compilers, and a cache that is here.

    Raises:
        ToolchainError: the compilers are missing, or are not those of the machine that asks.

    """
    cache_dir = task.cache if task.cache.is_dir() else default_root()
    return replace(task, toolchain=_same(task.toolchain), cache=cache_dir)


class Cluster:
    """A `Runner` over the workers of a dask scheduler, which decides how many run at once.

    Args:
        scheduler: its address, such as `tcp://10.0.0.1:8786`.
        settle: what a worker makes of a task before it works on it.

    """

    def __init__(self, scheduler: str, settle: Callable[[Any], Any] = settle) -> None:
        self._scheduler, self._settle = scheduler, settle

    def __call__(
        self, work: Callable[[T], R], items: Sequence[T], _jobs: int, /
    ) -> Iterator[Finished[R]]:
        """Give every item to the cluster; report each as it ends.

        Raises:
            KernelpackError: dask is not installed, or the scheduler does not answer.

        """
        if not items:
            return
        dask = _dask()
        with self._connect(dask) as client:
            words = (code_digest(), self._settle, work)
            numbers = {
                client.submit(_there, *words, item, pure=False): number
                for number, item in enumerate(items)
            }
            for future in dask.as_completed(numbers, loop=client.loop):
                yield replace(self._result(dask, future), index=numbers[future])
                future.release()

    def _connect(self, dask: ModuleType) -> "Client":
        try:
            client: Client = dask.Client(self._scheduler, timeout=PATIENCE_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise KernelpackError(
                f"no dask scheduler answers: {error}",
                where=self._scheduler,
                hint="start one with `dask scheduler`, and give its address, `tcp://HOST:8786`",
            ) from error
        return client

    def _result(self, dask: ModuleType, future: "Future[Finished[R]]") -> Finished[R]:
        """A worker's answer; if no worker lived to give it, the item has an error."""
        try:
            return future.result()
        except dask.KilledWorker as killed:
            error = ToolchainError(
                "every worker that compiled it was killed",
                hint="mostly memory ran out: give workers more of it, or fewer threads",
            )
            error.__cause__ = killed
            return Finished(index=0, error=error)
        except CancelledError as error:
            what = "the dask scheduler left while it had work"
            raise KernelpackError(what, where=self._scheduler) from error


def _dask() -> ModuleType:
    """The package, which most builds leave alone."""
    try:
        return import_module("distributed")
    except ImportError as error:
        raise KernelpackError(
            "a build on a cluster needs dask.distributed, which is not installed",
            hint=install_extra("dask"),
        ) from error


def _there(code: str, settle: Callable[[T], T], work: Callable[[T], R], item: T) -> Finished[R]:
    """On a worker: one item, from its settling to its outcome."""

    def settled(given: T) -> R:
        _check_code(code)
        return work(settle(given))

    return next(run_here(settled, [item], 1))


def _check_code(code: str) -> None:
    """Keys hold across machines only where all of them run one kernelpack."""
    if code != code_digest():
        raise ToolchainError(
            "runs another kernelpack than the machine that builds",
            where=f"the worker on {gethostname()}",
            hint="install one version on all of them",
        )


def _same(wanted: Toolchain) -> Toolchain:
    """The toolchain of this machine, which must be the one that was asked for to the byte."""
    root = wanted.ptxas.parents[1] if wanted.name == "system" else None
    found = _found(wanted.name, wanted.front_end, root)
    if (found.digest, found.ptxas_digest) != (wanted.digest, wanted.ptxas_digest):
        raise ToolchainError(
            f"its {wanted} is not that of the machine that builds",
            where=f"the worker on {gethostname()}",
            hint="install the same wheels on all of them",
        )
    return found


@cache
def _found(name: str, front_end: str, root: Path | None) -> Toolchain:
    return find(name, front_end, root=root)
