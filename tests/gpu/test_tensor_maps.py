"""Tensor maps on a real driver: whatever GPU is there, it encodes those of every target.

The TMA unit's rules are in `spec.tensormap`, from the manual; here the driver has its say on each
map that a manifest can ask for. Needs no bundle: `pytest --gpu tests/gpu/test_tensor_maps.py`.
"""

import pytest

from kernelpack.runtime.driver import connect
from tests.gpu.tensor_maps import TARGETS, distinct_maps, refused

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_the_driver_encodes_every_map(target):
    """cuTensorMapEncodeTiled takes every map of every variant and case of a target."""
    assert refused(connect(), distinct_maps(target)) == []
