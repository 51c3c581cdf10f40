"""The decode attention as it is built, on the emulator: variants on their telling cases."""

import pytest

from kernelpack.bundle.reader import Bundle
from kernelpack.kernels.mla_decode_attention.definition import MLA_DECODE_ATTENTION
from kernelpack.verify.plan import Planner, Scope
from tests.kernels.emulated import complaints
from tests.machine_code.build import built

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

KERNEL = "mla_decode_attention"
OURS = [v.id for v in built(KERNEL)]


@pytest.fixture(scope="module")
def planner(bundle: Bundle) -> Planner:
    return Planner(
        definition=MLA_DECODE_ATTENTION,
        variants=bundle.variants(KERNEL),
        scope=Scope(schedule="lazy"),
    )


@pytest.mark.parametrize(("turn", "variant_id"), [*enumerate(OURS)])
def test_variant_is_right(bundle, planner, turn, variant_id):
    """Right and without a finding on two sources, and on one of the other telling cases in turn."""
    assert complaints(bundle, planner, variant_id, turn) == []
