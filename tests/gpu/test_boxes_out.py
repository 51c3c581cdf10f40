"""Boxes that TMA stores, on the real device: swizzle, transposed matrices, barriers, edges.

The same test runs on the emulator, in tests/kernels; see test_kv_operand.py for a machine without
compilers. The NVFP4 GEMM of Blackwell stores so; what it takes for it Hopper has too.
"""

import pytest

from tests.gpu.kernels import Gpu, Maker
from tests.kernels.test_boxes_out import (  # noqa: F401 - collected here, with the device below
    test_rows_are_stored_where_they_belong,
)

pytestmark = pytest.mark.gpu


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Gpu | Maker:
    """The real one; or the emulator, to make kernels for it."""
    folder = request.config.getoption("--make-kernels")
    return Maker(folder) if folder else Gpu(request.config.getoption("--kernels"))
