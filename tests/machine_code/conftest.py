"""All of kernelpack's kernels, built once for the whole run, whatever number of workers it has."""

import os

import pytest

from kernelpack.bundle.reader import Bundle, open_bundle
from tests.machine_code.build import Code, build_once, disassemble


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The bundle of all manifests and targets."""
    own = tmp_path_factory.getbasetemp()
    return open_bundle(build_once(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own))


@pytest.fixture(scope="session")
def codes(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Code]:
    """The machine code of each entry."""
    return disassemble(bundle, tmp_path_factory.mktemp("cubins"))
