"""A worker process that compiles the subjects, each text once a session."""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache

import pytest

from kernelpack.spec.artifact import Ptx, Source
from tests.kept import Compile, compile_here
from tests.kept import compiled as kept
from tests.mutation.subjects import SUBJECTS
from tests.mutation.trial import Trial, make


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The whole set is run only when it is asked for: `-m mutation`."""
    if "mutation" not in (config.option.markexpr or ""):
        whole = [item for item in items if item.get_closest_marker("mutation")]
        items[:] = [item for item in items if item not in whole]
        config.hook.pytest_deselected(items=whole)


@pytest.fixture(scope="session")
def compile_source() -> Iterator[Compile]:
    """`(source, target)` → PTX, in a process that serves this NVRTC alone."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as worker:

        @cache
        def compiled(source: Source, arch: str) -> Ptx:
            def there(source: Source, arch: str) -> Ptx:
                return worker.submit(compile_here, source, arch).result()

            return kept(source, arch, there)

        yield compiled


@pytest.fixture(scope="session")
def unharmed(compile_source: Compile) -> Callable[[str], Trial]:
    """`name of a subject` → the subject without a fault, compiled."""

    @cache
    def made(name: str) -> Trial:
        return make(SUBJECTS[name], None, compile_source)

    return made
