"""A bundle names the sources it was made from: all of them, and no others."""

import json

import pytest

from kernelpack.bundle.merge import merge
from kernelpack.bundle.reader import open_bundle
from kernelpack.bundle.sbom import sbom
from kernelpack.bundle.shard import Shard
from kernelpack.check.rebuild import Sources, rebuild
from kernelpack.errors import BundleError
from tests.fakes.project import TEMPLATE

PARTED = """{% from "macros/words.j2" import word -%}
{% include "fill/" ~ ("first" if SIZE == 1 else "rest") ~ ".cuh" %}
// {{ word() }}
"""
USED = {
    *("manifests/fill.yaml", "templates/fill/kernel.cu.j2", "templates/macros/words.j2"),
    *("templates/fill/first.cuh", "templates/fill/rest.cuh"),
    *("templates/include/kp/all.cuh", "templates/include/kp/one.cuh"),
}


@pytest.fixture
def parted(project):
    """A template in parts, beside one of another target and a part that nothing includes."""
    folder = project.template.parent
    project.template.write_text(PARTED)
    for name in ("first", "rest", "unused"):
        (folder / f"{name}.cuh").write_text(TEMPLATE)
    (folder / "other_target.cu.j2").write_text("// of another target\n")
    macros = folder.parent / "macros"
    macros.mkdir()
    (macros / "words.j2").write_text("{% macro word() %}word{% endmacro %}")
    (macros / "unused.j2").write_text("{% macro other() %}other{% endmacro %}")
    return project


def sources(path):
    return open_bundle(path).provenance.sources


def test_all_are_named(parted):
    """Parts, macros and headers that were read, whatever their names; nothing beside them."""
    parted.build()
    assert sources(parted.output).keys() == USED


def test_a_template_that_was_read_before_is_named(parted, tmp_path):
    """A second build in one process names the same."""
    parted.build()
    parted.build(output=tmp_path / "again.kpk", cache_dir=tmp_path / "other")
    assert sources(parted.output) == sources(tmp_path / "again.kpk")


@pytest.mark.parametrize(("keep", "part"), [("size=1", "first"), ("size=2", "rest")])
def test_only_what_was_used_is_named(parted, keep, part):
    """Of a build of some variants, the sources of these."""
    parted.build(keep=keep)
    named = {path for path in sources(parted.output) if path.endswith(("first.cuh", "rest.cuh"))}
    assert named == {f"templates/fill/{part}.cuh"}


def test_the_bill_of_materials_has_them(parted):
    """An audit sees every file."""
    parted.build()
    bundle = open_bundle(parted.output)
    listed = json.loads(sbom(bundle.root, bundle.provenance, []))["components"]
    assert {component["name"] for component in listed} == USED


def test_a_part_that_changed_is_told(parted):
    """A rebuild holds no bundle guilty for an edit of a part: it names the part."""
    parted.build()
    (parted.template.parent / "rest.cuh").write_text(f"{TEMPLATE}// edited\n")
    here = Sources(manifests=(parted.manifest,), templates=parted.root / "templates")
    rebuilt = rebuild(parted.output, here, 100, parted.steps())
    (finding,) = rebuilt.findings
    assert (rebuilt.entries, finding.what) == (0, f"is not what {parted.output} was built from")
    assert finding.where.endswith("fill/rest.cuh")


def test_a_file_that_was_not_used_may_change(parted):
    """An edit of another target's template, or of a part that nothing includes, changes nothing."""
    parted.build()
    for name in ("other_target.cu.j2", "unused.cuh"):
        (parted.template.parent / name).write_text("// edited\n")
    here = Sources(manifests=(parted.manifest,), templates=parted.root / "templates")
    assert rebuild(parted.output, here, 100, parted.steps()).findings == ()


def test_shards_of_two_states_are_not_merged(parted, tmp_path):
    """Of a part that both shards include, two states are refused, and named."""
    shards = [tmp_path / "1.kpk", tmp_path / "2.kpk"]
    keep = "not size=1"  # both shards have one variant of `rest`
    parted.build(output=shards[0], shard=Shard(number=1, count=2), keep=keep)
    (parted.template.parent / "rest.cuh").write_text(f"{TEMPLATE}// edited\n")
    parted.build(output=shards[1], shard=Shard(number=2, count=2), keep=keep)
    assert [len(open_bundle(path)) for path in shards] == [1, 1]
    rule = r"2\.kpk: `templates/fill/rest\.cuh` is another than that of .*1\.kpk"
    with pytest.raises(BundleError, match=rule):
        merge(shards, tmp_path / "all.kpk")
