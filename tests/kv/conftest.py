"""What the tests of KV operands run on: the emulator, as either target; in tests/gpu a real one."""

import pytest

from tests.kv.device import Device


@pytest.fixture(params=["sm_90a", "sm_100a"])
def device(request: pytest.FixtureRequest) -> Device:
    """Emulated memory and kernels of a target."""
    return Device(request.param)
