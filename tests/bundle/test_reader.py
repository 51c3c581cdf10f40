"""What was written is what is read."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernelpack.bundle.entry import Provenance
from kernelpack.bundle.format import Holds
from kernelpack.bundle.frames import COMPRESSOR
from kernelpack.bundle.reader import open_bundle, twin_of
from kernelpack.bundle.writer import write, write_ptx
from kernelpack.errors import BundleError
from kernelpack.spec.artifact import Ptx, digest
from tests.fakes.bundles import entry, write_bundle
from tests.fakes.variants import variant

PROVENANCE = Provenance(
    kernelpack="0.1.0",
    toolchain="cuda-13.4",
    front_end="nvrtc",
    release="13.4",
    toolchain_digest="ab",
    versions={"nvrtc": "13.4.1", "ptxas": "13.4.2"},
    sources={"manifests/a.yaml": "cd"},
)


def by_id(variants):
    return {v.id: v for v in variants}


def test_variants_come_back_equal(sound, entries):
    """Every variant is equal to the one that was written, texts of expressions included."""
    expected = by_id(e.variant for e in entries)
    assert expected == by_id(open_bundle(sound).variants())


def test_variants_are_sorted_by_id(sound):
    """Variants of a kernel come in the order of their ids."""
    ids = [v.id for v in open_bundle(sound).variants("lora_shrink_qkv")]
    assert sorted(ids) == ids


def test_variants_of_another_kernel(sound):
    """A kernel that is not held has no variants."""
    assert open_bundle(sound).variants("mla_decode_fp8") == ()


def test_images_come_back_equal(sound, entries):
    """Every image is the bytes that were written."""
    bundle = open_bundle(sound)
    assert {e.image for e in entries} == {bundle.image(e.variant.id) for e in entries}


def test_resources_come_back_equal(sound, entries):
    """Resources and parameter offsets are those of the cubin."""
    bundle = open_bundle(sound)
    assert [e.resources for e in entries] == [bundle.resources(e.variant.id) for e in entries]


def test_find(sound, entries):
    """A record holds the entry's digests."""
    expected = entries[3]
    record = open_bundle(sound).find(expected.variant.id)
    assert (
        digest(expected.image),
        expected.ptx_digest,
        expected.source_digest,
        expected.variant.entry,
        expected.target,
    ) == (
        record.image_digest,
        record.ptx_digest,
        record.source_digest,
        record.symbol,
        record.target,
    )


def test_find_names_the_nearest(sound):
    """An id that is not held is refused, with the one that was meant."""
    wanted = variant(tile=65).id
    with pytest.raises(BundleError, match="no entry") as caught:
        open_bundle(sound).find(wanted)
    assert f"did you mean `{variant(tile=64).id}`?" == caught.value.hint


@pytest.mark.parametrize("wanted", ["", "mla", "\udc80", "mla[arch=sm_90a]", "x" * 10_000])
def test_find_names_the_kernels(sound, wanted):
    """An id of another kernel is refused, with the kernels that are held."""
    with pytest.raises(BundleError, match="no entry") as caught:
        open_bundle(sound).find(wanted)
    assert caught.value.hint == "kernels: lora_shrink_qkv"


def test_provenance(tmp_path):
    """Provenance comes back equal, parts and sources included."""
    write([entry(variant())], tmp_path / "x.kpk", PROVENANCE)
    assert open_bundle(tmp_path / "x.kpk").provenance == PROVENANCE


def test_targets_are_stored(sound):
    """The family table is in the file."""
    assert open_bundle(sound).targets == {"sm_90a": ((9, 0),), "sm_100a": ((10, 0),)}


def test_two_abis_of_one_kernel(tmp_path):
    """A bundle may hold a kernel in two ABI numbers, of different ids."""
    made = [variant(abi=1, tile=16), variant(abi=2, tile=64)]
    bundle = open_bundle(write_bundle(tmp_path / "x.kpk", made))
    assert bundle.kernels == {"lora_shrink_qkv": (1, 2)}


def test_header(sound):
    """An open bundle says what it is."""
    bundle = open_bundle(sound)
    assert (bundle.holds, bundle.compressor, bundle.signature) == (Holds.CUBIN, COMPRESSOR, b"")


def test_an_empty_bundle(tmp_path):
    """A bundle of no entries is a bundle."""
    bundle = open_bundle(write_bundle(tmp_path / "x.kpk", []))
    bundle.verify_all()
    assert (len(bundle), bundle.variants()) == (0, ())


def test_verify_all_of_a_sound_bundle(sound):
    """A sound bundle passes every check."""
    open_bundle(sound).verify_all()


def test_ptx_from_the_twin(bundle_path):
    """The PTX of an entry comes from the file beside it."""
    ptx = Ptx(text=".version 9.0\n")
    write_ptx([ptx, ptx], twin_of(bundle_path), PROVENANCE)
    assert ptx == open_bundle(bundle_path).ptx(ptx.digest)


def test_ptx_is_held_once(tmp_path):
    """Equal PTX is stored once, and a twin has no entries."""
    path = tmp_path / "x.ptx.kpk"
    write_ptx([Ptx(text="a"), Ptx(text="b"), Ptx(text="a")], path, PROVENANCE)
    bundle = open_bundle(path)
    assert (bundle.holds, len(bundle), bundle.ptx(digest("b")).text) == (Holds.PTX, 0, "b")


def test_ptx_without_a_twin(sound):
    """Without the twin the missing file is named."""
    with pytest.raises(BundleError, match=r"sound\.ptx\.kpk: the PTX of this bundle is missing"):
        open_bundle(sound).ptx(digest("x"))


def test_ptx_from_cubins_by_mistake(bundle_path, sound):
    """A bundle of cubins under the twin's name is refused."""
    twin_of(bundle_path).write_bytes(sound.read_bytes())
    with pytest.raises(BundleError, match="holds cubins, not PTX"):
        open_bundle(bundle_path).ptx(digest("x"))


@pytest.mark.parametrize("wanted", ["", "xyz", "00", digest("no such"), "é" * 64, " " * 64])
def test_ptx_of_an_unknown_digest(bundle_path, wanted):
    """A digest that the twin does not hold is refused."""
    write_ptx([Ptx(text="a")], twin_of(bundle_path), PROVENANCE)
    with pytest.raises(BundleError, match="no PTX of digest"):
        open_bundle(bundle_path).ptx(wanted)


def test_a_bundle_is_shared_by_threads(sound, entries):
    """Eight threads read one bundle at once, each what was written."""
    bundle = open_bundle(sound)
    ids = [e.variant.id for e in entries] * 8
    with ThreadPoolExecutor(8) as pool:
        images = list(pool.map(bundle.image, ids))
    assert [e.image for e in entries] * 8 == images


def test_a_replaced_file_stays_readable(bundle_path, entries):
    """A bundle that is renamed over keeps its old bytes for those who have it open."""
    bundle = open_bundle(bundle_path)
    write_bundle(bundle_path, [variant(tile=256)])
    assert entries[0].image == bundle.image(entries[0].variant.id)


def test_a_shortened_file_is_an_error(bundle_path, entries):
    """A file that is cut while it is open gives an error, not a signal."""
    bundle = open_bundle(bundle_path)
    os.truncate(bundle_path, 600)
    with pytest.raises(BundleError, match="changed while it was in use"):
        bundle.image(entries[0].variant.id)
