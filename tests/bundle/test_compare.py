"""What changed between two bundles."""

from dataclasses import replace

import pytest

from kernelpack.bundle.compare import compare
from kernelpack.bundle.reader import open_bundle
from tests.fakes.bundles import entry, write_bundle
from tests.fakes.variants import variant


def compared(folder, old, new):
    return compare(
        open_bundle(write_bundle(folder / "old.kpk", old)),
        open_bundle(write_bundle(folder / "new.kpk", new)),
    )


def test_equal_bundles(tmp_path):
    """Equal bundles have no difference."""
    found = compared(tmp_path, [variant()], [variant()])
    assert (found.added, found.removed, found.changed, found.same) == ((), (), (), 1)


def test_what_came_and_went(tmp_path):
    """Entries of one bundle alone are named."""
    a, b, c = (variant(tile=tile) for tile in (16, 32, 64))
    found = compared(tmp_path, [a, b], [b, c])
    assert ([r.id for r in found.added], [r.id for r in found.removed]) == ([c.id], [a.id])


@pytest.mark.parametrize("name", ["registers", "shared_bytes", "stack_bytes", "spill_bytes"])
def test_numbers(tmp_path, name):
    """A resource that differs is given with the old and the new number."""
    old = entry(variant())
    before = getattr(old.resources, name)
    new = replace(old, resources=replace(old.resources, **{name: before + 8}))
    (change,) = compared(tmp_path, [old], [new]).changed
    assert (change.id, change.numbers) == (variant().id, {name: (before, before + 8)})


def test_dynamic_shared_memory(tmp_path):
    """What a launch asks for is compared too, though the machine code is the same."""
    old, new = (entry(variant(shared_bytes=n), image=b"same") for n in ("8 * n", "16 * n"))
    (change,) = compared(tmp_path, [old], [new]).changed
    assert change.numbers == {"dynamic_shared_bytes": ("8 * n", "16 * n")}


def test_machine_code_of_the_same_size(tmp_path):
    """Another image of equal numbers is a change without numbers."""
    old, new = (entry(variant(), image=image) for image in (b"one", b"two"))
    (change,) = compared(tmp_path, [old], [new]).changed
    assert change.numbers == {}


def test_sizes_of_the_files(tmp_path):
    """The sizes of both files are given."""
    found = compared(tmp_path, [variant()], [variant(), variant(tile=16)])
    sizes = [(tmp_path / f"{name}.kpk").stat().st_size for name in ("old", "new")]
    assert sizes == [found.old_bytes, found.new_bytes]
