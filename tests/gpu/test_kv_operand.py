"""The KV operand on the real device: its rows, pointers and scales, and tiles through the tensor
maps of each constructor that Hopper has. The same tests run on the emulator, in tests/kv.

Where the GPU is, there need be no compiler: this file with `--gpu --make-kernels FOLDER`, on a
machine that has one, fills FOLDER, and with `--gpu --kernels FOLDER` it launches what is there.
"""

import pytest

from tests.gpu.kernels import Gpu, Maker
from tests.kv.test_rows import (  # noqa: F401 - collected here, with the device below
    test_a_token_that_is_not_there,
    test_division,
    test_encoded_indices,
    test_populate,
    test_rows_and_pointers,
    test_scale_pointers,
)
from tests.kv.test_tiles import (  # noqa: F401 - likewise
    test_a_clipped_store_leaves_the_next_rows_alone,
    test_a_clipped_tile_is_zero_past_its_count,
    test_rope_tiles,
    test_scale_tiles,
    test_tiles_of_a_paged_cache,
    test_tiles_of_other_storages,
)

pytestmark = pytest.mark.gpu


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Gpu | Maker:
    """The real one; or the emulator, to make kernels for it."""
    folder = request.config.getoption("--make-kernels")
    return Maker(folder) if folder else Gpu(request.config.getoption("--kernels"))
