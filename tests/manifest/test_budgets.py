"""What is refused before anything is compiled."""

from dataclasses import replace

import pytest

from kernelpack.errors import BudgetError, KernelpackError, ManifestError, TensorMapError
from kernelpack.manifest.expand import check_budgets, expand
from kernelpack.manifest.reader import parse
from kernelpack.manifest.schema import load_document
from tests.manifest.small import TEXT, small

TEMPLATE = "    template: small/plain.cu.j2\n"
COLUMNS = "budget: {tensor_memory_columns: 512}\n"


def variants(old: str = "", new: str = ""):
    """The variants of the small manifest, with `old` replaced once by `new`."""
    return expand(small(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("shared_bytes: 32768", "shared_bytes: LIMIT_SHARED"),
        ("registers: 64", "registers: 255"),
        ("block: [128, 1, 1]", "block: [8, 128, 1]"),
        ("cluster: [1, 1, 1]", "cluster: [16, 1, 1]"),
        ("box: [64, TILE]", "box: [64, 256]"),
        ("box: [64, TILE]", 'box: [64, "min(m, 999)"]'),
        ("value: m}", "value: 4294967295}"),
    ],
)
def test_within(old, new):
    """What is at a limit, or is known only when a kernel is called, is accepted."""
    assert check_budgets(variants(old, new)) is None


@pytest.mark.parametrize(
    ("old", "new", "kind", "message"),
    [
        ("shared_bytes: 32768", "shared_bytes: 232449", BudgetError, "at most 232448, not 232449"),
        ("shared_bytes: 32768", "shared_bytes: 512", BudgetError, "at most 512, not 32768"),
        ("registers: 64", "registers: 256", BudgetError, "registers must be at most 255, not 256"),
        ("registers: 64", "registers: -1", BudgetError, "registers must be at least 0, not -1"),
        (TEMPLATE, f"{TEMPLATE}    {COLUMNS}", BudgetError, "columns must be at most 0, not 512"),
        ("columns: 512", "columns: 513", BudgetError, "columns must be at most 512, not 513"),
        ("block: [128,", "block: [1025,", BudgetError, "block.x must be at most 1024, not 1025"),
        ("block: [128,", "block: [0,", BudgetError, "block.x must be at least 1, not 0"),
        ("block: [128, 1, 1]", "block: [-1, -1, 1]", BudgetError, "block.x must be at least 1"),
        ("block: [128, 1, 1]", "block: [1, 1, 65]", BudgetError, "block.z must be at most 64"),
        ("cluster: [1,", "cluster: [0,", BudgetError, "cluster.x must be at least 1, not 0"),
        ('sm_count)", 1, 1]', 'sm_count)", 0, 1]', BudgetError, "grid.y must be at least 1"),
        (
            "value: m}",
            "value: 4294967296}",
            BudgetError,
            "`rows`, a u32, must be at most 42949",
        ),
        ("value: m}", "value: -1}", BudgetError, "`rows`, a u32, must be at least 0, not -1"),
        (
            "block: [128, 1",
            "block: [128, 9",
            BudgetError,
            "threads of a block must be at most 1024",
        ),
        ("cluster: [1,", "cluster: [17,", BudgetError, "cluster.x must be at most 16, not 17"),
        ("box: [64, TILE]", "box: [64, 257]", TensorMapError, "box side must be 1 to 256"),
        ("box: [64, TILE]", "box: [72, TILE]", TensorMapError, "swizzle's 128 bytes, not 144"),
        ("box: [64, TILE]", "box: [4, TILE]", TensorMapError, "multiple of 16 bytes, not 8"),
    ],
)
def test_beyond(old, new, kind, message):
    """What is beyond a limit is refused by the variant's id, with the limit and the value."""
    with pytest.raises(kind, match=message) as error:
        check_budgets(variants(old, new))
    assert error.value.where.startswith("small[arch=sm_")


def test_registers_of_a_whole_block():
    """1024 threads share 65,536 registers, which come by eight: 64 a thread, not 65."""
    wide = TEXT.replace("block: [128,", "block: [1024,").replace("registers: 64", "registers: 65")
    with pytest.raises(BudgetError, match="registers of a block must be at most 65536, not 73728"):
        check_budgets(expand(load_document(parse(wide, "m"))))


def test_too_many_parameters():
    """A signature is at most 4096 bytes, which every toolchain and driver takes."""
    first = variants()[0]
    maps = tuple(p for p in first.params if p.name == "x_map") * 33
    with pytest.raises(BudgetError, match="bytes of parameters must be at most 4096, not 4224"):
        check_budgets([replace(first, params=maps)])


def test_two_manifests_of_one_name():
    """Two variants of one id would be one entry of a bundle."""
    with pytest.raises(ManifestError, match=r"2 variants have the id small\[arch=sm_100a"):
        check_budgets(variants() * 2)


def test_two_ids_of_one_entry():
    """Two variants of one symbol cannot be distinguished by a profiler."""
    first = variants()[0]
    twins = [
        replace(first, axes=(("A", "x_y"), ("B", "z"))),
        replace(first, axes=(("C", "x_y_z"),)),
    ]
    with pytest.raises(KernelpackError, match="2 variants have the entry small_x_y_z for sm_100a"):
        check_budgets(twins)
