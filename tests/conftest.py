"""Options of the whole suite. Without `--gpu` nothing under tests/gpu is collected."""

from pathlib import Path

import pytest

from kernelpack.emulator.core import attempt

GPU_TESTS = Path(__file__).parent / "gpu"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--gpu", action="store_true", help="collect the tests that need a GPU")
    parser.addoption("--bundle", type=Path, help="the bundle that the tests on a GPU launch from")
    parser.addoption("--flash-mla", type=Path, help="the folder of a `flashmla_ops.abi3.so`")
    parser.addoption("--kernels", type=Path, help="a folder that --make-kernels filled")
    parser.addoption(
        "--make-kernels", type=Path, help="run tests/gpu/test_kv_operand.py with no GPU: fill it"
    )
    parser.addoption("--tables", type=Path, help="machine code of the instruction tables")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what needs a GPU; None lets other rules decide."""
    is_gpu_test = collection_path == GPU_TESTS or GPU_TESTS in collection_path.parents
    return True if is_gpu_test and not config.getoption("--gpu") else None


@pytest.fixture(scope="session", autouse=True)
def _compiled_engine() -> None:
    """The emulator's engine is compiled before any test: none has its minute, or its note."""
    attempt.core()


class FailuresAsTheyHappen:
    """Names each failure when it happens: a run takes minutes, and reports them at its end."""

    def __init__(self, config: pytest.Config) -> None:
        self._plugins = config.pluginmanager

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A line for what failed; a worker of xdist has no terminal, its controller prints."""
        reporter = self._plugins.get_plugin("terminalreporter")
        if report.failed and reporter:
            reporter.ensure_newline()
            reporter.write_line(f"FAILED {report.nodeid} ({report.when})", red=True)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(FailuresAsTheyHappen(config))
