"""One library, eight threads, two devices."""

import pytest

from tests.cpp.compiler import HERE, ask, compile_program


@pytest.fixture(scope="module")
def threads(programs):
    """threads.cpp, which stops at the first data race."""
    return compile_program(
        HERE / "threads.cpp", programs / "threads", "-fsanitize=thread", "-g", compiler="clang++"
    )


def test_eight_threads_share_a_library(threads, libcuda, bundles):
    """Threads that choose, load, pack and start at once: no race, and every launch is made."""
    assert ask(threads, libcuda, *bundles) == ["640"]
