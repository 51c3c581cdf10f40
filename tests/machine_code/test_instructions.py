"""Every variant's machine code really uses the units it was written for, and nothing spills.

What nvdisasm calls them: UTCHMMA is tcgen05.mma of 16-bit floats, UTCQMMA of 8-bit ones, UTCOMMA of
4-bit ones with block scales; UTCATOMSWS allocates tensor memory, LDTM loads from it, UTCCP copies
from shared memory to it; UTCBAR is tcgen05.commit; HGMMA is wgmma of 16-bit floats, QGMMA of 8-bit
ones, HMMA mma.sync; UTMALDG is a TMA load, LDGSTS cp.async; SYNCS works on an mbarrier; F2FP
narrows floats; ACQBULK waits for the kernel ahead, PREEXIT lets the next one start; LDL and STL are
local memory, where spills go.
"""

import pytest

from tests.kernels.known import known
from tests.machine_code.build import built, complaints_once

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

LOCAL_MEMORY = {"LDL", "STL"}
EVERY_VARIANT = pytest.mark.parametrize("variant", built(), ids=lambda v: v.id)


@EVERY_VARIANT
def test_uses_its_units(opcodes, variant):
    """Each variant of a kernel uses the tensor cores, copies and barriers it is about."""
    assert known(variant.kernel).UNITS[variant.arch.name] - opcodes[variant.id] == set()


@pytest.mark.parametrize(
    ("tokens", "unit"),
    [(8, "HMMA"), (16, "HMMA"), (32, "HGMMA"), (64, "HGMMA"), (128, "HGMMA"), (256, "HGMMA")],
)
def test_multiplier_of_bf16_tokens(opcodes, tokens, unit):
    """Few bf16 tokens are multiplied by warps, more by warpgroups."""
    name = f"nvfp4_w4a16_grouped_gemm[arch=sm_90a,out=bf16,tile_tokens={tokens}]"
    assert opcodes[name] & {"HMMA", "HGMMA"} == {unit}


@pytest.mark.parametrize(
    ("row", "units"),
    [
        ("row=bf16_576,scale_block=0,heads=128", {"UTCHMMA"}),
        ("row=bf16_512,scale_block=0,heads=64", {"UTCHMMA"}),
        ("row=fp8_576,scale_block=0,heads=128", {"UTCQMMA"}),
        ("row=fp8_512,scale_block=0,heads=64", {"UTCQMMA"}),
        ("row=fp8_640,scale_block=0,heads=128", {"UTCHMMA", "UTCQMMA"}),
        ("row=fp8_656,scale_block=0,heads=64", {"UTCHMMA"}),
        ("row=fp8_576,scale_block=32,heads=64", {"UTCHMMA"}),
    ],
)
def test_multiplier_of_rows(opcodes, row, units):
    """Rows of e4m3 with one scale or none are multiplied as they are, all others as bf16."""
    found = opcodes[f"sparse_mla_prefill[arch=sm_100a,{row},query=bf16]"]
    assert found & {"UTCHMMA", "UTCQMMA"} == units


@pytest.mark.parametrize(
    ("row", "units"),
    [
        ("row=bf16_576,scale_block=0,heads=64", {"HGMMA"}),
        ("row=bf16_512,scale_block=0,heads=8", {"HGMMA"}),
        ("row=fp8_576,scale_block=0,heads=32", {"QGMMA"}),
        ("row=fp8_512,scale_block=0,heads=8", {"QGMMA"}),
        ("row=fp8_512,scale_block=0,heads=64", {"QGMMA"}),
        ("row=fp8_640,scale_block=0,heads=32", {"HGMMA", "QGMMA"}),
        ("row=fp8_656,scale_block=0,heads=128", {"HGMMA"}),
        ("row=fp8_576,scale_block=32,heads=16", {"HGMMA"}),
    ],
)
def test_multiplier_of_rows_on_hopper(opcodes, row, units):
    """So they are on Hopper."""
    assert (
        opcodes[f"sparse_mla_prefill[arch=sm_90a,{row},query=bf16]"] & {"HGMMA", "QGMMA"} == units
    )


@pytest.mark.parametrize(
    "row",
    [
        *(f"row=bf16_576,scale_block=0,heads={heads}" for heads in (8, 64)),
        *(f"row=fp8_640,scale_block=0,heads={heads}" for heads in (8, 32)),
        "row=fp8_656,scale_block=0,heads=128",
    ],
)
def test_copies_of_rows(opcodes, row):
    """On Hopper rows are copied to shared memory, those that become bf16 there too."""
    assert "LDGSTS" in opcodes[f"sparse_mla_prefill[arch=sm_90a,{row},query=bf16]"]


@EVERY_VARIANT
def test_no_local_memory(opcodes, variant):
    """No variant keeps anything in local memory."""
    assert opcodes[variant.id] & LOCAL_MEMORY == set()


@EVERY_VARIANT
def test_resources(bundle, variant):
    """Nothing spills, and the registers of a thread are within the manifest's budget."""
    record = bundle.find(variant.id)
    assert (record.spill_bytes, record.stack_bytes) == (0, 0)
    assert record.registers <= variant.budget.registers


def test_holds_every_variant(bundle):
    """The bundle's entries are those that tests compile, for both targets."""
    assert {record.id for record in bundle.records()} == {v.id for v in built()}
    assert {record.target for record in bundle.records()} == {"sm_100a", "sm_90a"}


def test_is_sound(bundle):
    """`check` finds nothing in what `build` made."""
    assert complaints_once(bundle) == (len(built()), [])
