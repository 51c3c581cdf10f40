"""What no assembler accepts is refused by name; whatever else is written ends well."""

import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpack.emulator.faults import PtxError
from kernelpack.emulator.semantics import families
from kernelpack.emulator.semantics.table import TABLE
from kernelpack.errors import KernelpackError
from tests.emulator.kernel import launch

_FOUR = "[%map, {%r0, %r1, %r2, %r3, %r4}]"
_LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global"
GATHER4 = f"{_LOAD}.tile::gather4.mbarrier::complete_tx::bytes [s], {_FOUR}, [bar]"
SCATTER4 = f"cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group {_FOUR}, [s]"
PREFETCH4 = f"cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 {_FOUR}"
IN_PAIRS = f"{_LOAD}.mbarrier::complete_tx::bytes.cta_group::2 [s], [%map, {{%r0, %r1}}], [bar]"


@pytest.mark.parametrize(
    ("instruction", "target", "says"),
    [
        ("add.u32 %r1", "sm_90a", "1 operands where `add` has 3"),
        ("add.u32 %r1, %r2, %r3, %r4", "sm_90a", "4 operands where `add` has 3"),
        ("add.u32 %rd1, %r2, %r3", "sm_90a", "`%rd1` of 64 bits where `.b32` is expected"),
        ("add.u32 %r1, %p2, %r3", "sm_90a", "`%p2` of 1 bits"),
        ("add.u64 %rd1, %r2, %rd3", "sm_90a", "`%r2` of 32 bits"),
        ("add.u32 5, %r2, %r3", "sm_90a", "a destination must be a register"),
        ("ld.global.v4.u32 {%r1, %r2}, [%in]", "sm_90a", "2 values where 4 are expected"),
        ("ld.global.u32 {%r1, %r2}, [%in]", "sm_90a", "2 values where 1 are expected"),
        ("st.global.v2.u32 [%out], %r1", "sm_90a", "1 values where 2 are expected"),
        ("ld.global.u64 %r1, [%in]", "sm_90a", "`%r1` of 32 bits"),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1}, {%r2}, {%r3}, {%f4}",
            "sm_90a",
            "1 values where 4 are expected",
        ),
        (
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2}, [%r3]",
            "sm_90a",
            "2 values where 4",
        ),
        ("mov.b64 %rd1, {%r1, %r2, %r3}", "sm_90a", "do not go together"),
        ("tcgen05.wait::ld.sync.aligned", "sm_90a", "`tcgen05` is not an instruction of sm_90a"),
        ("tcgen05.wait::ld.sync.aligned", "sm_100", "`tcgen05` is not an instruction of sm_100"),
        ("wgmma.fence.sync.aligned", "sm_100a", "`wgmma` is not an instruction of sm_100a"),
        (GATHER4, "sm_90a", "`.tile::gather4` is not a modifier of sm_90a"),
        (GATHER4, "sm_100", "`.tile::gather4` is not a modifier of sm_100"),
        (GATHER4.replace("2d", "3d"), "sm_100a", "a gather of four rows is `.2d`"),
        (SCATTER4, "sm_90a", "`.tile::scatter4` is not a modifier of sm_90a"),
        (PREFETCH4, "sm_90a", "`.tile::gather4` is not a modifier of sm_90a"),
        (IN_PAIRS, "sm_90a", "`.cta_group::2` is not a modifier of sm_90a"),
    ],
)
def test_what_an_assembler_refuses(instruction: str, target: str, says: str):
    """The number of operands, their widths, the lengths of vectors, the target."""
    with pytest.raises(PtxError, match=says) as caught:
        launch(f"{instruction};", target=target)
    assert "ptx:" in caught.value.where


def test_loads_may_fill_a_wider_register():
    """So may stores and conversions (PTX ISA 9.4.1)."""
    result, out = launch("mov.u32 %r1, 300; st.global.u8 [%mine], %r1; ld.global.u8 %r2, [%mine];"
                         "st.global.u32 [%mine], %r2;")  # fmt: skip
    assert (result.clean, int(out[0])) == (True, 300 & 0xFF)


def test_a_chain_of_moves_takes_time_in_proportion():
    """What a load fills late is followed through 20,000 moves, written last first."""
    moves = "".join(f"mov.b32 %c{k + 1}, %c{k};" for k in range(20_000, -1, -1))
    load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 %c0, [%r1];"
    begin = time.process_time()
    launch(f".reg .b32 %c<20002>; bra.uni END; {load} {moves} END: ret;")
    assert time.process_time() - begin < 10


OPERANDS = st.sampled_from(
    ["%r1", "%rd1", "%f1", "%p1", "%q1", "%mine", "_", "7", "-1", "0f3F800000", "1.5", "%tid.x",
     "{%r1, %r2}", "{%r1, %r2, %r3, %r4}", "{%p1}", "{}", "[%mine]", "[%r1]", "[s+16]", "[bar]",
     "[%map, {%r1, %r2}]", "[%rd1+8]", "%r1|%p1", "!%p1", "-%r1", "nowhere", "s", "(%r1)"]
)  # fmt: skip
MODIFIERS = sorted({modifier for row in TABLE.rows.values() for modifier in row.types | row.flags})


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_any_instruction_ends_in_a_result_or_a_named_error(data: st.DataObject):
    """Every row of the table, with modifiers and operands that may make no sense."""
    row = families.TABLE.rows[data.draw(st.sampled_from(sorted(TABLE.rows)))]
    own = sorted(row.types | row.flags) or MODIFIERS
    modifiers = data.draw(st.lists(st.sampled_from(own) | st.sampled_from(MODIFIERS), max_size=4))
    operands = data.draw(st.lists(OPERANDS, max_size=6))
    target = data.draw(st.sampled_from(["sm_90a", "sm_100a"]))
    name = ".".join((row.name, *modifiers))
    with suppress(KernelpackError):
        launch(f"{name} {', '.join(operands)};", target=target, step_limit=2000)
