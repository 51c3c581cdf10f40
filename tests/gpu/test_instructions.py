"""Each instruction of the emulator's tables against the real device, bit for bit.

Approximate instructions must keep the error that the manual states. The machine code comes from
`--tables DIR` (see `tests.gpu.instructions`), or is made here.
"""

import ctypes
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

from kernelpack.runtime.driver import Driver, connect
from kernelpack.runtime.memory import Memory
from tests.emulator.semantics.bench import LANES, NUMPY, evaluate
from tests.emulator.semantics.bounds import EXACT, bound_of
from tests.gpu.instructions import ENTRY, Instruction, build, instructions

pytestmark = pytest.mark.gpu

DEVICE = 0


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each instruction that there is machine code for."""
    folder = metafunc.config.getoption("--tables")
    if folder is None:
        build(folder := Path(mkdtemp(prefix="kernelpack-")))
    present = [each for each in instructions() if each.cubin(folder).exists()]
    chosen = [(each, each.cubin(folder)) for each in present if is_exact(each) is _wants(metafunc)]
    metafunc.parametrize(("instruction", "cubin"), chosen, ids=[str(each) for each, _ in chosen])


def is_exact(instruction: Instruction) -> bool:
    """Whether the manual leaves no error."""
    return bound_of(instruction.case.text) is EXACT


def _wants(metafunc: pytest.Metafunc) -> bool:
    return "exact" in metafunc.function.__name__


@pytest.fixture(scope="module")
def driver() -> Driver:
    return connect()


def test_exact_instruction(driver: Driver, instruction: Instruction, cubin: Path):
    """The device and the emulator give the same bits in every lane."""
    bits = np.dtype(f"u{NUMPY[instruction.case.result].itemsize}")
    expected = evaluate(instruction.case).view(bits)
    assert expected.tolist() == on_device(driver, instruction, cubin).view(bits).tolist()


def test_approximate_instruction(driver: Driver, instruction: Instruction, cubin: Path):
    """The device is within the stated error of the emulator, which is within half an ulp."""
    bound = bound_of(instruction.case.text)
    expected = reals(instruction, evaluate(instruction.case))
    found = reals(instruction, on_device(driver, instruction, cubin))
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    with np.errstate(invalid="ignore"):
        near = np.abs(found - expected) <= bound.of(expected)
    assert (same | near | beyond(instruction, bound.reach)).all()


def beyond(instruction: Instruction, reach: float) -> np.ndarray:
    """Lanes whose operand lies where no error is stated."""
    largest = np.max([np.abs(values.astype(np.float64)) for values in instruction.operands], axis=0)
    return largest > reach if np.isfinite(reach) else np.zeros(1, bool)


def reals(instruction: Instruction, values: np.ndarray) -> np.ndarray:
    """Results as f64; pairs of halves one after the other."""
    halves = "f16x2" in instruction.case.text
    return (values.view(np.float16) if halves else values).astype(np.float64)


def on_device(driver: Driver, instruction: Instruction, cubin: Path) -> np.ndarray:
    """The result of every lane of one warp."""
    out = np.zeros(LANES, NUMPY[instruction.case.result])
    arrays = [out, *instruction.operands]
    memories = [Memory(driver, array.nbytes, DEVICE) for array in arrays]
    for memory, array in zip(memories, arrays, strict=True):
        memory.write(array)
    with driver.current(DEVICE):
        start(driver, cubin.read_bytes(), [memory.address for memory in memories])
    memories[0].read(out)
    return out


def start(driver: Driver, image: bytes, addresses: list[int]) -> None:
    """Load the machine code, launch one warp on it and wait."""
    library = driver.call("cuLibraryLoadData", image, None, None, 0, None, None, 0)
    kernel = driver.call("cuLibraryGetKernel", library, ENTRY.encode())
    function = driver.call("cuKernelGetFunction", kernel)
    parameters = (tuple(addresses), (ctypes.c_void_p,) * len(addresses))
    driver.call("cuLaunchKernel", function, 1, 1, 1, LANES, 1, 1, 0, 0, parameters, 0)
    driver.call("cuCtxSynchronize")
    driver.call("cuLibraryUnload", library)
