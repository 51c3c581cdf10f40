"""The same entries give the same bytes, whole or not at all."""

import stat
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelpack.bundle.reader import open_bundle
from kernelpack.bundle.writer import write
from kernelpack.errors import BundleError
from kernelpack.spec.arch import Arch
from kernelpack.spec.expr import Expr, Op, parse
from kernelpack.spec.params import PointerParam, Slot
from kernelpack.spec.variant import Guard
from tests.bundle.test_reader import PROVENANCE
from tests.fakes.bundles import entry, write_bundle
from tests.fakes.variants import variant


@settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_order_does_not_matter(sound, entries, tmp_path, data):
    """Entries in any order give the same bytes."""
    path = tmp_path / "x.kpk"
    path.unlink(missing_ok=True)
    write_bundle(path, data.draw(st.permutations(entries)))
    assert sound.read_bytes() == path.read_bytes()


def test_two_folders_give_the_same_bytes(tmp_path, entries):
    """The path of a bundle is not in it."""
    folders = [tmp_path / "a", tmp_path / "b" / "c"]
    paths = [folder / f"{folder.name}.kpk" for folder in folders]
    [folder.mkdir(parents=True) for folder in folders]
    first, second = (write_bundle(path, entries).read_bytes() for path in paths)
    assert first == second


def test_root(tmp_path, entries):
    """What is returned is the root that the file is opened with."""
    root = write(entries, tmp_path / "x.kpk", PROVENANCE)
    assert root == open_bundle(tmp_path / "x.kpk").root


def test_an_image_changes_the_root(tmp_path):
    """The root covers what the frames hold."""
    roots = {
        write([entry(variant(), image=image)], tmp_path / "x.kpk", PROVENANCE)
        for image in (b"one", b"two")
    }
    assert len(roots) == 2


def test_an_equal_file_is_left(bundle_path, entries):
    """A file that holds the same already is not written again."""
    before = bundle_path.stat()
    write_bundle(bundle_path, entries)
    assert (before.st_ino, before.st_mtime_ns) == identity(bundle_path)


def identity(path):
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


@pytest.mark.parametrize("place", [100, 700, -100])
def test_a_damaged_file_is_written_again(bundle_path, sound, entries, place):
    """A file of the same index with a damaged byte anywhere is replaced."""
    data = bytearray(bundle_path.read_bytes())
    data[place] ^= 0xFF
    bundle_path.write_bytes(data)
    write_bundle(bundle_path, entries)
    assert sound.read_bytes() == bundle_path.read_bytes()


def test_another_file_is_replaced(tmp_path, sound, entries):
    """A file of another kind at the path is replaced."""
    (tmp_path / "x.kpk").write_text("something else")
    write_bundle(tmp_path / "x.kpk", entries)
    assert sound.read_bytes() == (tmp_path / "x.kpk").read_bytes()


def test_equal_images_are_held_once(tmp_path):
    """Two entries of one cubin share its frame."""
    made = [entry(variant(tile=t), image=bytes([t]) + bytes(range(256)) * 64) for t in (16, 64)]
    shared = [replace(e, image=made[0].image) for e in made]
    one, two = (write_bundle(tmp_path / f"{n}.kpk", e) for n, e in enumerate((shared, made)))
    images = {open_bundle(one).image(e.variant.id) for e in shared}
    assert (images, one.stat().st_size < two.stat().st_size) == ({made[0].image}, True)


def test_everybody_may_read(bundle_path):
    """A bundle is readable by others, unlike a temporary file."""
    assert stat.S_IMODE(bundle_path.stat().st_mode) == 0o644


def test_one_id_twice(tmp_path):
    """Two entries of one id are refused; the id is named."""
    with pytest.raises(BundleError, match="two entries of one id") as caught:
        write_bundle(tmp_path / "x.kpk", [variant(), variant()])
    assert caught.value.where == variant().id


def wrong(**changes):
    return replace(entry(variant()), **changes)


def of_cubin(**changes):
    return wrong(resources=replace(entry(variant()).resources, **changes))


def of_variant(**changes):
    return entry(replace(variant(), **changes))


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (wrong(target="sm_100a"), "the target is sm_100a, not sm_90a"),
        (of_cubin(target="sm_100a"), "the target of the cubin is sm_100a"),
        (of_cubin(entry="other"), "the entry of the cubin is other"),
        (of_cubin(slots=(Slot(0, 8),)), "the parameters of the cubin"),
        (of_variant(cost=parse("m + tokens")), "names `tokens`, not a size"),
        (of_variant(constants=(("BIG", 2**63),)), "`BIG` does not fit in 64 bits"),
        (of_variant(guards=(Guard(when=parse("m"), reason="x"),) * 1025), "1025 items"),
        (of_variant(params=(PointerParam(name="z", argument="z"),)), "names the argument `z`"),
        (of_variant(template="x" * 4097), "a text of 4097 bytes"),
        (of_variant(cost=Expr("deep", ((Op.CONST, 1),) * 65)), "65 deep"),
        (of_variant(cost=Expr("long", ((Op.CONST, 1), *((Op.NEG, 0),) * 4096))), "4097 words"),
    ],
)
def test_an_entry_that_contradicts_itself(tmp_path, made, what):
    """An entry that no reader could use is refused; its id is named; nothing is written."""
    with pytest.raises(BundleError, match=what) as caught:
        write_bundle(tmp_path / "x.kpk", [made])
    assert (caught.value.where, list(tmp_path.iterdir())) == (made.variant.id, [])


def test_every_target_round_trips(tmp_path):
    """Targets with no machine code of their own yet are held as well."""
    made = [replace(variant(), arch=Arch(name)) for name in ("sm_100f", "sm_103a")]
    bundle = open_bundle(write_bundle(tmp_path / "x.kpk", made))
    assert bundle.targets == {"sm_100f": ((10, 0), (10, 3), (10, 7)), "sm_103a": ((10, 3),)}
