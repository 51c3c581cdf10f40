"""All of kernelpack's kernels, built once for the whole run, whatever number of workers it has."""

import os

import pytest

from kernelpack.bundle.reader import Bundle, open_bundle
from tests.machine_code.build import build_once, opcodes_once


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The bundle of all manifests and targets."""
    own = tmp_path_factory.getbasetemp()
    return open_bundle(build_once(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own))


@pytest.fixture(scope="session")
def opcodes(bundle: Bundle) -> dict[str, set[str]]:
    """The names of the instructions of each entry, without their modifiers, by id."""
    return opcodes_once(bundle)
