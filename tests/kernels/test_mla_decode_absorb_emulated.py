"""Before decode attention, as it is built, on the emulator: both targets on their telling cases,
mistakes of its sources, which must not go unnoticed, and the op on numpy arrays.

`kernelpack verify` runs the rest.
"""

import ml_dtypes
import numpy as np
import pytest

from kernelpack import kv, ops
from kernelpack.bundle.reader import Bundle
from kernelpack.kernels.kv_operand.rows import FORMATS
from kernelpack.kernels.mla_decode_absorb.definition import MLA_DECODE_ABSORB
from kernelpack.kernels.mla_decode_absorb.new_rows import normalise, rotate
from kernelpack.verify.plan import Planner, Scope
from tests.kernels.emulated import KeptLibrary, complaints
from tests.kernels.seeded import Mistake
from tests.machine_code.build import variants

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

KERNEL = "mla_decode_absorb"
BF16 = ml_dtypes.bfloat16


@pytest.mark.parametrize("variant_id", [v.id for v in variants() if v.kernel == KERNEL])
def test_variant_is_right(bundle: Bundle, variant_id: str) -> None:
    """Every bit of rows and rotations right, products within bounds, and no finding."""
    listed = bundle.variants(KERNEL)
    planner = Planner(definition=MLA_DECODE_ABSORB, variants=listed, scope=Scope(schedule="lazy"))
    assert complaints(bundle, planner, variant_id) == []


# -- mistakes of a source ------------------------------------------------------------------------


def own(*, old: str, new: str) -> Mistake:
    """A mistake in the template."""
    file = "mla_decode_absorb/kernel.cu.j2"
    return Mistake(definition=MLA_DECODE_ABSORB, file=file, old=old, new=new)


def shared(name: str, *, old: str, new: str) -> Mistake:
    """A mistake in a header."""
    return Mistake(definition=MLA_DECODE_ABSORB, file=f"kp/{name}.cuh", old=old, new=new)


_GROUPS, _BLOCK, _NORM = "mla/token_groups", "mla/weight_block", "mla/rms_norm"
MISTAKES = {
    "nobody waits for the tile": own(
        old="__syncthreads();  // the tile", new="__syncwarp();  // the tile"
    ),
    "a tile over what is read": own(
        old="__syncthreads();  // all have", new="__syncwarp();  // all have"
    ),
    "tokens past the end": own(old="if (token >= tokens) continue;", new=""),
    "another token's scale": own(old="groups.scales[token]", new="groups.scales[token ^ 1]"),
    "gaps of heads": own(old="head * head_stride", new="head * (NOPE + rope)"),
    "heads past the last": own(old="if (head(i) < queries.heads)", new="if (true)"),
    "high words": own(old="count == 2 &&", new="false &&"),
    "positions past freqs": own(old=">= tokens.most_positions)", new="> tokens.most_positions)"),
    "sequences past the batch": own(old="tokens.batch ? min", new="false ? min"),
    "sequences by 32": shared("kv/sequences", old="first += 32)", new="first += sequences)"),
    "infinity is a scale": shared(_GROUPS, old="ptx::min_nan(most, LARGEST_VALUE)", new="most"),
    "an infinite inverse": shared(_GROUPS, old="isinf(exact) ? 0.0f : exact", new="exact"),
    "K in another order": shared(_BLOCK, old="8 * piece + 2 * q", new="8 * piece + 2 * (q ^ 1)"),
    "lanes add up half": shared(_NORM, old="step < 32;", new="step < 16;"),
    "rotation the other way": shared(
        "mla/rope", old="__fsub_rn(__fmul_rn(a, c)", new="__fadd_rn(__fmul_rn(a, c)"
    ),
    "a format is another": shared(
        "kv/append", old="return append(Fp8_640{})", new="return append(Fp8_656{})"
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_in_a_source(name: str) -> None:
    """A barrier, a bound, a scale or an order that is wrong is caught."""
    assert MISTAKES[name].is_caught()


# -- the op on numpy arrays ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def step():
    """Tokens of two sequences, and all that a step has of them."""
    random = np.random.default_rng(0)
    angles = random.uniform(0, 6, (50, 32))
    scales = random.uniform(0.01, 0.02, (3, 4, 1))
    return {
        "q": random.standard_normal((4, 3, 192)).astype(BF16),
        "w_uk": random.standard_normal((3, 512, 128)).astype(ml_dtypes.float8_e4m3fn),
        "w_uk_scale": scales.astype(np.float32),
        "freqs": np.stack([np.cos(angles), np.sin(angles)], -1).reshape(50, 64).astype(np.float32),
        "new_kv": random.standard_normal((4, 2112)).astype(BF16)[:, 1536:],
        "gamma": random.standard_normal(512).astype(BF16),
    }


def cache_of(row, lengths=(14, 0)):
    """An empty cache of two sequences, with room for 32 tokens each."""
    scales = np.zeros((6, 16), np.float32) if row.array_scales == "always" else None
    table = np.array([[4, 5], [1, 0]], np.int32)
    blocks = np.zeros((6, 16, row.elements), row.dtype.numpy)
    return kv.Paged(blocks, table=table, lengths=np.array(lengths, np.int32), scales=scales)


def rows_of(cache):
    return cache.blocks.view(np.uint8).reshape(96, -1)


OFFSETS = np.array([0, 3, 4], np.int32)
POSITIONS = np.array([14, 15, 16, 0], np.int64)
SLOTS = np.array([78, 79, 80, 16], np.int64)


@pytest.mark.parametrize("arch", ["sm_100a", "sm_90a"])
@pytest.mark.parametrize("name", ["bf16_576", "fp8_640", "fp8_656"])
def test_rows_are_those_of_the_append(bundle: Bundle, step, name: str, arch: str) -> None:
    """What is written is what the cache append writes of normed and rotated values."""
    library = KeptLibrary(bundle.path, arch=arch)
    row, new = FORMATS[name], step["new_kv"]
    latent = normalise(new[:, :512], step["gamma"], 1e-6)
    rope = rotate(new[:, 512:], step["freqs"][POSITIONS])
    wanted, found = cache_of(row), cache_of(row)
    ops.kv_cache_append(latent, rope, wanted, slots=SLOTS, library=library)
    given = {key: step[key] for key in ("new_kv", "gamma", "freqs")}
    assert ops.mla_decode_absorb(**given, kv=found, row_offsets=OFFSETS, library=library) is None
    assert np.array_equal(rows_of(wanted), rows_of(found))
    assert np.array_equal(wanted.scales, found.scales)


def test_by_sequence_and_one_by_one(bundle: Bundle, step) -> None:
    """A token's place may be given, or follow from its sequence: the same bits."""
    library, row = KeptLibrary(bundle.path), FORMATS["fp8_656"]
    first, second = cache_of(row), cache_of(row)
    one = ops.mla_decode_absorb(**step, kv=first, row_offsets=OFFSETS, library=library)
    two = ops.mla_decode_absorb(
        **step, kv=second, positions=POSITIONS, slots=SLOTS, library=library
    )
    assert np.array_equal(one.view(np.uint16), two.view(np.uint16))
    assert np.array_equal(rows_of(first), rows_of(second))
    assert rows_of(first).any(1).sum() == 4


def test_a_nan_stays_where_it_is(bundle: Bundle, step) -> None:
    """A NaN of a query is its token's and head's alone, and other queries keep their bits."""
    library = KeptLibrary(bundle.path)
    given = {key: step[key] for key in ("q", "w_uk", "w_uk_scale", "freqs")}
    places = {"positions": POSITIONS, "library": library}
    clean = ops.mla_decode_absorb(**given, **places).view(np.uint16)
    given["q"] = given["q"].copy()
    given["q"][1, 2, 5] = np.nan
    found = ops.mla_decode_absorb(**given, **places)
    is_nan = np.isnan(found.astype(np.float32))
    assert is_nan[1, 2, :512].all()
    is_nan[1, 2, :512] = False
    assert not is_nan.any()
    found.view(np.uint16)[1, 2] = clean[1, 2]
    assert np.array_equal(clean, found.view(np.uint16))
