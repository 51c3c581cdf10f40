"""The index remap as it is built, on the emulator: telling cases, and mistakes of its sources."""

import pytest

from kernelpack.bundle.reader import Bundle
from kernelpack.kernels.kv_remap_indices.definition import KV_REMAP_INDICES
from kernelpack.verify.plan import Planner, Scope
from tests.kernels.emulated import complaints
from tests.kernels.seeded import Mistake
from tests.machine_code.build import variants

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

KERNEL = "kv_remap_indices"


@pytest.mark.parametrize("variant_id", [v.id for v in variants() if v.kernel == KERNEL])
def test_variant_is_right(bundle: Bundle, variant_id: str) -> None:
    """Every index right and no finding on every telling case."""
    listed = bundle.variants(KERNEL)
    planner = Planner(definition=KV_REMAP_INDICES, variants=listed, scope=Scope(schedule="lazy"))
    assert complaints(bundle, planner, variant_id) == []


def lookup(old: str, new: str = "") -> Mistake:
    """A mistake of finding a token."""
    file = "kp/kv/lookup.cuh"
    return Mistake(definition=KV_REMAP_INDICES, file=file, old=old, new=new)


def own(old: str, new: str = "") -> Mistake:
    """A mistake of the kernel itself."""
    file = "kv_remap_indices/kernel.cu.j2"
    return Mistake(definition=KV_REMAP_INDICES, file=file, old=old, new=new)


MISTAKES = {
    "places below 0 are -1": lookup("if (t < 0) return t;", "if (t < 0) return -1;"),
    "places below 0 are large": lookup("if (t < 0) return t;"),
    "sequences that are not there": lookup("if (b >= sequences) return -1;"),
    "the table's end": lookup("if (page >= pages) return -1;"),
    "blocks that are not there": lookup("return block < blocks.count ?", "return true ?"),
    "the table's stride": lookup("uint64_t(b) * table_stride", "uint64_t(b) * pages"),
    "the end of a sequence": lookup("t < offsets[b + 1] - first &&"),
    "the end of the rows": lookup("&& row < blocks.num_encoded()"),
    "the offset in a page": lookup("blocks.page.divisor + offset", "blocks.page.divisor"),
    "tokens for sequences": own("token_sequences ? token_sequences[token] : token", "token"),
    "entries after the last": own("min(FOUR, k - column)", "FOUR"),
    "gaps are overlooked": own("uint64_t(token) * stride", "uint64_t(token) * k"),
    "unaligned fours": own("(k | stride) % FOUR == 0", "k % FOUR == 0"),
    "each thread takes a four": own("i += uint64_t(gridDim.x) * THREADS", "i += work"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_in_a_source(name: str) -> None:
    """A wrong bound, stride or sequence is caught, by numbers or out of bounds."""
    assert MISTAKES[name].is_caught()
