"""The programs of these tests, compiled once a session, and the bundles they read."""

from pathlib import Path

import pytest

from tests.cpp.compiler import HERE, SANITIZE, compile_program, written
from tests.machine_code.build import variants


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where programs are compiled to."""
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="session")
def inspect(programs: Path) -> Path:
    """inspect.cpp, which stops at the first byte it should not touch."""
    return compile_program(HERE / "inspect.cpp", programs / "inspect", *SANITIZE)


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Every variant of every manifest, a bundle for each target, for the stand-in."""
    folder = tmp_path_factory.mktemp("bundles")
    hopper, blackwell = (
        written(folder / f"{arch}.kpk", variants(arch)) for arch in ("sm_90a", "sm_100a")
    )
    return hopper, blackwell


@pytest.fixture(scope="session")
def libcuda(programs: Path) -> Path:
    """A stand-in for libcuda.so."""
    return compile_program(HERE / "fake_cuda.cpp", programs / "libcuda.so", "-shared", "-fPIC")
