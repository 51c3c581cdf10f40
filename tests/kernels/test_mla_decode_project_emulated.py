"""The projection after decode attention, as it is built, on the emulator: both targets on their
telling cases, mistakes of its sources, which must not go unnoticed, and the op on numpy arrays.

`kernelpack verify` runs the rest.
"""

import ml_dtypes
import numpy as np
import pytest

from kernelpack import ops
from kernelpack.bundle.reader import Bundle
from kernelpack.kernels.block_scaled.reference import Weights, product
from kernelpack.kernels.mla_decode_project.definition import MLA_DECODE_PROJECT
from kernelpack.verify.plan import Planner, Scope
from tests.kernels.emulated import KeptLibrary, complaints
from tests.kernels.seeded import Mistake
from tests.machine_code.build import variants

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

KERNEL = "mla_decode_project"


@pytest.mark.parametrize("variant_id", [v.id for v in variants() if v.kernel == KERNEL])
def test_variant_is_right(bundle: Bundle, variant_id: str) -> None:
    """Outputs within their bounds, and no finding, on telling cases."""
    listed = bundle.variants(KERNEL)
    planner = Planner(definition=MLA_DECODE_PROJECT, variants=listed, scope=Scope(schedule="lazy"))
    assert complaints(bundle, planner, variant_id) == []


def own(*, old: str, new: str, columns: int = 32) -> Mistake:
    """A mistake in the template."""
    file, axes = "mla_decode_project/kernel.cu.j2", {"COLUMNS": columns}
    return Mistake(definition=MLA_DECODE_PROJECT, axes=axes, file=file, old=old, new=new)


MISTAKES = {
    "nobody waits for other groups": own(
        old="__syncthreads();  // all partial", new="__syncwarp();  // all partial"
    ),
    "sums over what is read": own(columns=128, old="turn ^= 1)", new="turn ^= 0)"),
    "nobody waits for the tile": own(
        columns=128, old="__syncthreads();  // the tile", new="__syncwarp();  // the tile"
    ),
    "tokens past the end": own(old="if (eight + token >= end) continue;", new=""),
    "a group is left out": own(old="group < GROUPS; ++group", new="group < GROUPS - 1; ++group"),
    "one scale for all groups": own(
        old="scales[part.head * GROUPS + group]", new="scales[part.head * GROUPS]"
    ),
    "scales of the first eight": own(
        columns=128, old="groups.scales + eight,", new="groups.scales,"
    ),
    "gaps of tokens": own(old="x + token * token_stride", new="x + token * heads * LATENT"),
    "another block's columns": own(old="to + part.block * COLUMNS + column", new="to + column"),
    "tiles once each": own(
        old="first += token_ctas * TILE_TOKENS;", new="first += 2 * token_ctas * TILE_TOKENS;"
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_in_a_source(name: str) -> None:
    """A barrier, a turn, a bound or a scale that is wrong is caught."""
    assert MISTAKES[name].is_caught()


@pytest.mark.parametrize("arch", ["sm_100a", "sm_90a"])
def test_op_on_numpy_arrays(bundle: Bundle, arch: str) -> None:
    """Heads out of a wider array, weights as bytes; a NaN is its token's and head's alone."""
    random = np.random.default_rng(0)
    x = random.standard_normal((3, 2, 576)).astype(ml_dtypes.bfloat16)
    x[1, 0, 5] = np.nan
    codes = random.standard_normal((2, 128, 512)).astype(ml_dtypes.float8_e4m3fn)
    scales = random.uniform(0.01, 0.02, (2, 1, 4)).astype(np.float32)
    library = KeptLibrary(bundle.path, arch=arch)
    found = ops.mla_decode_project(x[..., :512], codes.view(np.uint8), scales, library=library)
    assert np.isnan(found[1, 0].astype(np.float32)).all()
    found[1, 0], x[1, 0] = 0, 0
    wanted = product(x[..., :512], Weights.of(codes, scales))
    assert wanted.ratio(found).max() <= 1
