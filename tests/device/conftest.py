"""The small kernel among those that kernelpack knows the meaning of."""

import pytest

from kernelpack.kernels.registry import KERNELS
from tests.verify import small


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    monkeypatch.setitem(KERNELS, "twice", small.DEFINITION)


@pytest.fixture
def bundle(tmp_path):
    """A bundle of two variants."""
    return small.bundle(tmp_path / "x.kpk")
