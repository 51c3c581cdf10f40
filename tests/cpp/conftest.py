"""The programs of these tests, compiled once a session, and the bundles they read."""

from pathlib import Path

import pytest

from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from tests.cpp.compiler import HERE, ROOT, SANITIZE, compile_program, written


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where programs are compiled to."""
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="session")
def inspect(programs: Path) -> Path:
    """inspect.cpp, which stops at the first byte it should not touch."""
    return compile_program(HERE / "inspect.cpp", programs / "inspect", *SANITIZE)


@pytest.fixture(scope="session")
def lora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of every variant of LoRA shrink's manifest, for the stand-in."""
    variants = expand(load(ROOT / "manifests" / "lora_shrink_qkv.yaml"))
    return written(tmp_path_factory.mktemp("lora") / "lora.kpk", variants)


@pytest.fixture(scope="session")
def libcuda(programs: Path) -> Path:
    """A stand-in for libcuda.so."""
    return compile_program(HERE / "fake_cuda.cpp", programs / "libcuda.so", "-shared", "-fPIC")
