"""mma.sp against the real device, bit for bit: where metadata lie no text of the manual says."""

from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

from kernelpack.runtime.driver import connect
from kernelpack.runtime.memory import Memory
from tests.gpu.instructions import assembled
from tests.gpu.sparse_mma import Sparse, all_sparse
from tests.gpu.test_instructions import DEVICE, start

pytestmark = pytest.mark.gpu


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each form and selector."""
    folder = metafunc.config.getoption("--tables")
    if folder is None:
        assembled(all_sparse(), folder := Path(mkdtemp(prefix="kernelpack-")))
    metafunc.parametrize(
        ("product", "cubin"),
        [(each, each.cubin(folder)) for each in all_sparse()],
        ids=[str(each) for each in all_sparse()],
    )


def test_sparse_product(product: Sparse, cubin: Path):
    """The device and the emulator give the same registers."""
    driver, expected = connect(), product.emulated()
    arrays = [np.zeros_like(expected), *map(np.ascontiguousarray, product.registers())]
    memories = [Memory(driver, array.nbytes, DEVICE) for array in arrays]
    for memory, array in zip(memories, arrays, strict=True):
        memory.write(array)
    with driver.current(DEVICE):
        start(driver, cubin.read_bytes(), [memory.address for memory in memories])
    memories[0].read(arrays[0])
    assert arrays[0].tolist() == expected.tolist()
