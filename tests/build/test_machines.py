"""Builds that several machines share: a remote cache, and shards."""

import shutil

import pytest

from kernelpack.bundle.merge import merge
from kernelpack.bundle.reader import open_bundle
from kernelpack.bundle.shard import Shard
from tests.build.bench import IDS, both, states
from tests.fakes.project import ENTRIES


@pytest.fixture
def afar(project, tmp_path):
    """Options of a project whose objects go to, and come from, a folder that stands for a net."""
    url = f"file://{tmp_path / 'afar'}"
    project.build(remote_cache=url)
    project.compiled()
    return {"remote_cache": url, "cache_dir": tmp_path / "empty", "output": tmp_path / "x.kpk"}


def test_another_machine_has_it_from_afar(project, afar):
    """With a cold cache and a remote that knows, nothing is compiled, and the bytes are equal."""
    report = project.build(**afar)
    assert (states(report), report.trouble) == (["cached"] * 3, "")
    assert project.compiled() == []
    assert both(afar["output"]) == both(project.output)


def test_an_edit_takes_the_rest_from_afar(project, afar):
    """Variants are shared one by one: what no edit touched is not compiled elsewhere either."""
    project.header("one").write_text("// another\n")
    assert states(project.build(**afar)) == ["compiled", "cached", "cached"]


def test_a_reader_puts_nothing_afar(project, afar, tmp_path):
    """A machine that may only read leaves the remote as it was."""
    before = sorted((tmp_path / "afar").iterdir())
    project.header("one").write_text("// another\n")
    project.build(remote_read_only=True, **afar)
    assert sorted((tmp_path / "afar").iterdir()) == before


def test_a_remote_that_fails_breaks_nothing(project, afar, tmp_path):
    """A build goes on without its remote, gives the same bytes, and says so."""
    shutil.rmtree(tmp_path / "afar")
    (tmp_path / "afar").write_text("in the way of a folder")
    report = project.build(**afar)
    assert states(report) == ["compiled"] * 3
    assert report.trouble.startswith(f"{afar['remote_cache']}: no longer used: ")
    assert both(afar["output"]) == both(project.output)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_merged_shards_are_the_whole(project, tmp_path, count):
    """Shards that machines with caches of their own built are, merged, the unsharded bundle."""
    parts = [tmp_path / f"{number}.kpk" for number in range(1, count + 1)]
    for number, part in enumerate(parts, 1):
        shard = Shard(number=number, count=count)
        project.build(output=part, shard=shard, cache_dir=tmp_path / f"cache{number}")
    assert project.compiled() == ENTRIES
    merge(parts[::-1], tmp_path / "merged.kpk")
    project.build()
    assert both(tmp_path / "merged.kpk") == both(project.output)


def test_shards_are_not_confused(project):
    """Of one cache and one output, each shard is what it says, however often it is built."""
    asked = [Shard(number=number, count=2) for number in (1, 2, 1)]
    ids = [tuple(o.variant_id for o in project.build(shard=shard).outcomes) for shard in asked]
    assert ids == [(IDS[0], IDS[2]), (IDS[1],), (IDS[0], IDS[2])]
    assert open_bundle(project.output).provenance.shard.startswith("1/2 of ")
