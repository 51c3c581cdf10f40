"""The combine as it is built, on the emulator."""

import pytest

from kernelpack.bundle.reader import Bundle
from kernelpack.kernels.mla_decode_combine.definition import MLA_DECODE_COMBINE
from kernelpack.verify.plan import Planner, Scope
from tests.kernels.emulated import complaints
from tests.machine_code.build import built

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

KERNEL = "mla_decode_combine"


@pytest.mark.parametrize("variant_id", [v.id for v in built(KERNEL)])
def test_variant_is_right(bundle: Bundle, variant_id):
    """Right and without a finding: sinks, empty splits, more splits than a warp has lanes."""
    planner = Planner(
        definition=MLA_DECODE_COMBINE,
        variants=bundle.variants(KERNEL),
        scope=Scope(schedule="lazy"),
    )
    assert complaints(bundle, planner, variant_id) == []
