"""What each axis costs."""

import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.wheel.axes import Cost, costs
from tests.fakes.bundles import entry, write_bundle
from tests.fakes.variants import variant

BIG, SMALL = bytes(range(256)) * 40, b"small"


def costs_of(folder, images):
    """The costs of a bundle whose machine code depends on (dtype, tile)."""
    made = [entry(variant(dtype=d, tile=t), image=image) for (d, t), image in images.items()]
    bundle = open_bundle(write_bundle(folder / "x.kpk", made))
    return costs(bundle, [record.id for record in bundle.records()])


def test_the_dearest_first(tmp_path):
    """Six tiles of machine code of its own each cost more than two types."""
    images = {(d, t): f"{d} {t}".encode() * 50 for d in ("bf16", "fp16") for t in range(1, 7)}
    found = costs_of(tmp_path, images)
    assert [(c.kernel, c.axis, c.values) for c in found] == [
        ("lora_shrink_qkv", "TILE", 6),
        ("lora_shrink_qkv", "DTYPE", 2),
    ]


def test_all_but_the_largest_value(tmp_path):
    """An axis costs what remains to be cut when its largest value stays."""
    (tile,) = costs_of(tmp_path, {("bf16", 16): BIG, ("bf16", 64): SMALL})
    assert 0 < tile.size_bytes < 100


def test_shared_machine_code_is_free(tmp_path):
    """An axis that does not change the machine code costs nothing."""
    assert costs_of(tmp_path, {("bf16", 16): BIG, ("bf16", 64): BIG}) == ()


def test_text():
    """A cost reads as people say it."""
    cost = Cost(kernel="k", axis="TILE", values=6, size_bytes=61_240_000)
    assert str(cost) == "TILE of k: 61.2 MB for 6 values"


@pytest.mark.parametrize("ids", [(), []])
def test_nothing(tmp_path, ids):
    """No entries cost nothing."""
    bundle = open_bundle(write_bundle(tmp_path / "x.kpk", [variant()]))
    assert costs(bundle, ids) == ()
