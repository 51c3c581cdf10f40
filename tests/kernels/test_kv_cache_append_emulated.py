"""The cache append as it is built, on the emulator: every variant on its telling cases, mistakes of
its sources, which must not go unnoticed, and the op on numpy arrays.

`kernelpack verify` runs the rest.
"""

import ml_dtypes
import numpy as np
import pytest

from kernelpack import kv, ops
from kernelpack.bundle.reader import Bundle
from kernelpack.kernels.kv_cache_append.definition import KV_CACHE_APPEND
from kernelpack.kernels.kv_operand.rows import FORMATS
from kernelpack.verify.plan import Planner, Scope
from tests.kernels.emulated import KeptLibrary, complaints
from tests.kernels.seeded import Mistake
from tests.machine_code.build import variants

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

KERNEL = "kv_cache_append"


@pytest.mark.parametrize("variant_id", [v.id for v in variants() if v.kernel == KERNEL])
def test_variant_is_right(bundle: Bundle, variant_id: str) -> None:
    """Every bit right and no finding on every telling case, and where the variant is selected."""
    listed = bundle.variants(KERNEL)
    planner = Planner(definition=KV_CACHE_APPEND, variants=listed, scope=Scope(schedule="lazy"))
    assert complaints(bundle, planner, variant_id) == []


# -- mistakes of a source ------------------------------------------------------------------------


def rows(row: str = "fp8_576", file: str = "kp/kv/append.cuh", *, old: str, new: str) -> Mistake:
    """A mistake that shows in rows of a format."""
    return Mistake(definition=KV_CACHE_APPEND, axes={"ROW": row}, file=file, old=old, new=new)


_BLOCKS = {"file": "kp/kv/blocks.cuh"}
_LOOKUP = {"file": "kp/kv/lookup.cuh"}
_OWN = {"file": "kv_cache_append/kernel.cu.j2"}
MISTAKES = {
    "a NaN is overlooked": rows(old="ptx::max_nan(most, fabsf(s", new="fmaxf(most, fabsf(s"),
    "signs count": rows(old="fabsf(second_of(pairs[i]))", new="second_of(pairs[i])"),
    "half of the lanes": rows(old="step < lanes;", new="step < lanes / 2;"),
    "infinity is a scale": rows(old="ptx::min_nan(most, BF16_LARGEST)", new="most"),
    "no floor": rows(old="ptx::max_nan(exact, LEAST_SCALE)", new="exact"),
    "no floor of powers": rows(old="ptx::max_nan(exact, LEAST_POWER)", new="exact"),
    "powers round down": rows(old="+ 0x7fffff) &", new=") &"),
    "exact powers double": rows(old="+ 0x7fffff) &", new="+ 0x800000) &"),
    "a NaN becomes a power": rows(old="least == least ?", new="true ?"),
    "pairs are of one value": rows(old="first_of(high), scale)", new="second_of(high), scale)"),
    "words are swapped": rows(
        old="make_uint2(words[0], words[1]", new="make_uint2(words[1], words[0]"
    ),
    "rope is not divided": rows(row="fp8_640", old="Row::INLINE_SCALES == 0>", new="false>"),
    "rope is divided": rows(row="fp8_656", old="Row::INLINE_SCALES == 0>", new="true>"),
    "rope has the latent's scale": rows(old="values.rope, own.rope", new="values.rope, own.latent"),
    "rope counts for nothing": rows(old="if (whole) latent =", new="if (false) latent ="),
    "scales a block late": rows(old="scales[lane / lanes]", new="scales[lane / lanes + 1]"),
    "rope's scales come first": rows(old="scales[Row::LATENT / block +", new="scales["),
    "another lane's scale": rows(old="lane % lanes == 0", new="lane % lanes == lanes - 1 + 32"),
    "scales in the row are of all": rows(
        row="fp8_656", old="block = Row::INLINE_BLOCK", new="block = 512"
    ),
    "one row past the cache": rows(**_BLOCKS, old="< num_encoded() ?", new="<= num_encoded() ?"),
    "layers are overlooked": rows(**_BLOCKS, old="block * stride +", new="block * page.divisor +"),
    "the table's end": rows(**_LOOKUP, old="if (page >= pages) return -1;", new=""),
    "the table is of slot 0": rows(**_LOOKUP, old="uint64_t(b) * table_stride +", new=""),
    "high words are overlooked": rows(
        **_OWN, row="fp8_512", old="slot_words == 2 &&", new="false &&"
    ),
    "lengths are overlooked": rows(**_OWN, old="lengths[b] + (token", new="(token"),
    "tokens of nobody": rows(**_OWN, old="token >= row_offsets[lookup.sequences]", new="false"),
    "the sequence before": rows(
        **_OWN, old="row_offsets[middle] <= token", new="row_offsets[middle] < token"
    ),
    "gaps are overlooked": rows(**_OWN, old="token * latent_stride", new="token * 512"),
    "rope's gaps are overlooked": rows(**_OWN, old="token * rope_stride", new="token * 64"),
    "a row's scales are another's": rows(
        **_OWN, old="(row) * scales_per_row", new="(row + 1) * scales_per_row"
    ),
    "the last token is left out": rows(**_OWN, old="token < t;", new="token + 1 < t;"),
    "each warp takes a token": rows(**_OWN, old="token += gridDim.x * WARPS", new="token += t"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_in_a_source(name: str) -> None:
    """A wrong rounding, scale, place or bound is caught, by numbers or out of bounds."""
    assert MISTAKES[name].is_caught()


# -- the ops on numpy arrays ---------------------------------------------------------------------


@pytest.mark.parametrize("arch", ["sm_100a", "sm_90a"])
@pytest.mark.parametrize("name", FORMATS)
def test_append_on_numpy_arrays(bundle: Bundle, name: str, arch: str) -> None:
    """Slots of a layer of a cache, values cut from one array; all else stays as it was."""
    row, random = FORMATS[name], np.random.default_rng(1)
    x = random.standard_normal((5, 576)).astype(ml_dtypes.bfloat16)
    cache = np.full((4, 1, 2, 16, 1, row.elements), 7, row.dtype.numpy)
    scales = np.full((4, 1, 2, 16, 1, 1), 7, np.float32) if row.array_scales == "always" else None
    slots = np.array([3, 63, -1, 17, 2**20], np.int64)
    operand = kv.Paged(cache, layer=1, scales=scales)
    library = KeptLibrary(bundle.path, arch=arch)
    rope = x[:, 512:] if row.rope else None
    assert ops.kv_cache_append(x[:, :512], rope, operand, slots=slots, library=library) is None
    written = (cache[:, 0, 1, :, 0] != np.array(7, row.dtype.numpy)).any(-1)
    assert np.argwhere(written).tolist() == [[0, 3], [1, 1], [3, 15]]
    assert (cache[:, 0, 0] == np.array(7, row.dtype.numpy)).all()


def test_append_then_remap(bundle: Bundle) -> None:
    """Tokens that follow their sequences are found again where the remap says that they are."""
    library = KeptLibrary(bundle.path)
    x = np.arange(7 * 576).reshape(7, 576).astype(ml_dtypes.bfloat16)
    table = np.array([[4, 5], [1, 0]], np.int32)
    cache = kv.Paged(
        np.zeros((6, 16, 576), x.dtype), table=table, lengths=np.array([14, 0], np.int32)
    )
    offsets = np.array([0, 4, 7], np.int32)
    ops.kv_cache_append(x[:, :512], x[:, 512:], cache, row_offsets=offsets, library=library)
    places = np.array([[14, 15, 16, 17], [0, 1, 2, -1]], np.int32)
    encoded = ops.kv_remap_indices(places, cache, library=library)
    rows = cache.blocks.reshape(-1, 576)
    assert np.array_equal(x[:4], rows[encoded[0]])
    assert np.array_equal(x[4:], rows[encoded[1, :3]])
    assert encoded[1, 3] == -1
