"""Several bundles as one: the bytes of a build of everything, or a refusal that says why."""

from dataclasses import replace
from itertools import permutations

import pytest

from kernelpack.bundle.merge import merge
from kernelpack.bundle.reader import open_bundle, twin_of
from kernelpack.bundle.writer import write, write_ptx
from kernelpack.errors import BundleError
from kernelpack.spec.artifact import Ptx, digest
from tests.bundle.conftest import make_entries
from tests.fakes.bundles import entry, provenance
from tests.fakes.variants import variant

ENTRIES = tuple(
    replace(made, ptx_digest=digest(f"// {made.variant.id}")) for made in make_entries()
)
WHOLE = "0123456789abcdef"
ORDERS = tuple(permutations(range(3)))


def written(path, entries, **changes):
    """A bundle and its twin."""
    made = replace(provenance(), **changes)
    write(entries, path, made)
    write_ptx([Ptx(text=f"// {one.variant.id}") for one in entries], twin_of(path), made)
    return path


def shards(folder, numbers=(1, 2, 3)):
    return [
        written(folder / f"{n}.kpk", ENTRIES[n - 1 :: 3], shard=f"{n}/3 of {WHOLE}")
        for n in numbers
    ]


def both(path):
    return path.read_bytes(), twin_of(path).read_bytes()


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_shards_give_the_whole(tmp_path, order):
    """In any order, the merged files are byte for byte those of one build."""
    whole = written(tmp_path / "whole.kpk", ENTRIES)
    parts = shards(tmp_path)
    assert merge([parts[n] for n in order], tmp_path / "x.kpk") == len(ENTRIES)
    assert both(tmp_path / "x.kpk") == both(whole)


def test_the_output_may_be_an_input(tmp_path):
    """Everything is read before anything is written."""
    whole = written(tmp_path / "whole.kpk", ENTRIES)
    parts = shards(tmp_path)
    merge(parts, parts[1])
    assert both(parts[1]) == both(whole)


def test_a_shard_may_be_empty(tmp_path):
    """More shards than variants is not a mistake."""
    parts = [
        written(tmp_path / f"{n}.kpk", ENTRIES[: 2 - n], shard=f"{n}/2 of {WHOLE}") for n in (1, 2)
    ]
    assert merge(parts, tmp_path / "x.kpk") == 1


def test_sources_add_up(tmp_path):
    """Bundles of different manifests know together what each was made from."""
    a = written(tmp_path / "a.kpk", ENTRIES[:1], sources={"manifests/a.yaml": "1"})
    b = written(tmp_path / "b.kpk", ENTRIES[1:], sources={"manifests/b.yaml": "2"})
    merge([a, b], tmp_path / "x.kpk")
    sources = open_bundle(tmp_path / "x.kpk").provenance.sources
    assert sources == {"manifests/a.yaml": "1", "manifests/b.yaml": "2"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"toolchain_digest": "0" * 64},
            "b.kpk: its compilers and headers are others",
        ),
        ({"release": "12.9"}, "`toolchain.release` is 12.9, and 13.0 in .*a.kpk"),
        ({"front_end": "nvcc"}, "`toolchain.front_end` is nvcc, and nvrtc in"),
        ({"kernelpack": "9.9"}, "`kernelpack` is 9.9, and"),
        ({"versions": {"ptxas": "2"}}, "`version.ptxas` is 2, and 1 in"),
        (
            {"sources": {"manifests/a.yaml": "2"}},
            "`manifests/a.yaml` is another than that of",
        ),
    ],
)
def test_what_was_not_made_with_the_same(tmp_path, change, says):
    """Another compiler, another kernelpack or an edited source is named."""
    same = {"versions": {"ptxas": "1"}, "sources": {"manifests/a.yaml": "1"}}
    a = written(tmp_path / "a.kpk", ENTRIES[:1], **same)
    b = written(tmp_path / "b.kpk", ENTRIES[1:], **same | change)
    with pytest.raises(BundleError, match=says):
        merge([a, b], tmp_path / "x.kpk")
    assert not (tmp_path / "x.kpk").exists()


@pytest.mark.parametrize(("image", "says"), [(b"", "the same"), (b"of another kind", "other")])
def test_an_id_comes_once(tmp_path, image, says):
    """An entry of two bundles is named, and whether they agree on it."""
    a = written(tmp_path / "a.kpk", [entry(variant())])
    b = written(tmp_path / "b.kpk", [entry(variant(), image=image)])
    with pytest.raises(BundleError, match=rf"`.*` is in .*a.kpk too, with {says} machine code"):
        merge([a, b], tmp_path / "x.kpk")


def test_a_missing_shard_is_named(tmp_path):
    """Two of three shards are no bundle."""
    parts = shards(tmp_path, (1, 3))
    with pytest.raises(BundleError, match=f"1.kpk: .* shard 1/3 of {WHOLE}, and shard 2 .*missing"):
        merge(parts, tmp_path / "x.kpk")


def test_shards_are_of_one_build(tmp_path):
    """A shard of a build of other variants does not belong to these."""
    other = written(tmp_path / "o.kpk", ENTRIES[1::3], shard=f"2/3 of {'f' * 16}")
    with pytest.raises(BundleError, match="shard 2 of the same build is missing"):
        merge([*shards(tmp_path, (1, 3)), other], tmp_path / "x.kpk")


@pytest.mark.parametrize("text", ["4/3", "0/2", "1/2/3", "one", "1/2 of xyz"])
def test_a_shard_that_is_none(tmp_path, text):
    """What a bundle says of its shard is checked."""
    odd = written(tmp_path / "odd.kpk", ENTRIES, shard=text)
    with pytest.raises(BundleError, match=f"says that it is shard `{text}`"):
        merge([odd], tmp_path / "x.kpk")


def test_the_twin_must_be_there(tmp_path):
    """A bundle without its PTX would give a twin with holes."""
    parts = shards(tmp_path)
    twin_of(parts[2]).unlink()
    with pytest.raises(BundleError, match=r"3.ptx.kpk: the PTX of this bundle is missing"):
        merge(parts, tmp_path / "x.kpk")


def test_damage_is_found(tmp_path):
    """An image that is not what its digest says never gets into another bundle."""
    parts = shards(tmp_path)
    data = bytearray(parts[0].read_bytes())
    data[-9] ^= 0xFF
    parts[0].write_bytes(data)
    with pytest.raises(BundleError):
        merge(parts, tmp_path / "x.kpk")
