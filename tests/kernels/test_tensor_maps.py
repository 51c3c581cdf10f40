"""The list of tensor maps that a real driver is asked to encode; see tests/gpu."""

import subprocess
import sys
from pathlib import Path

import pytest

from kernelpack.runtime.driver import Driver
from tests.fakes.driver import FakeCuda
from tests.gpu.tensor_maps import TARGETS, distinct_maps, refused

ROOT = Path(__file__).parents[2]
LEAST = {"sm_100a": 1800, "sm_90a": 2400}


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_no_map_is_missing(target):
    """All manifests together ask for so many different maps."""
    maps = distinct_maps(target)
    assert len(maps) >= LEAST[str(target)]
    assert len({(m.element, m.dims, m.strides_bytes, m.box, m.swizzle) for m in maps}) == len(maps)


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "left"), [(0, 0), (1, 2)])
def test_what_a_driver_refuses_is_told(answer, left):
    """A map that is encoded is not reported, one that is refused is, with the driver's error."""
    cuda = FakeCuda(answers={"cuTensorMapEncodeTiled": answer})
    said = refused(Driver(cuda), distinct_maps(TARGETS[0])[:2])
    assert [line for line in said if "CUDA_ERROR_INVALID_VALUE" in line] == said
    assert len(said) == left


def test_collected_without_a_gpu():
    """The test on a real driver is found where there is no driver and no bundle."""
    asked = ["--gpu", "--collect-only", "-q", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *asked, "tests/gpu/test_tensor_maps.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.count("test_the_driver_encodes_every_map") == len(TARGETS)
