"""What a change of sources, manifests or tools compiles again, and how a build explains it."""

import os
import shutil
import time

from kernelpack.build.pipeline import build
from kernelpack.bundle.reader import open_bundle
from kernelpack.render.render import render
from tests.build.bench import reasons, stamp, states
from tests.fakes import compilers
from tests.fakes.project import ENTRIES, Project


def test_moved_project_is_cached(built, tmp_path_factory):
    """No absolute path takes part in a key."""
    there = Project(tmp_path_factory.mktemp("moved") / "project")
    shutil.copytree(built.root, there.root)
    assert states(there.build()) == ["cached"] * 3


def test_older_header_with_other_content(built):
    """A header replaced by one from 1980 recompiles exactly the variants that include it."""
    built.header("one").write_text("// another\n")
    os.utime(built.header("one"), (315_532_800, 315_532_800))
    report = built.build()
    assert states(report) == ["compiled", "cached", "cached"]
    assert built.compiled() == ["fill_1"]


def test_touch_everything(built):
    """New modification times alone recompile nothing."""
    later = time.time() + 3600
    for path in built.root.rglob("*"):
        os.utime(path, (later, later))
    assert states(built.build()) == ["cached"] * 3
    assert built.compiled() == []


def test_manifest_edit_that_leaves_the_source(built):
    """A new guard makes a new bundle from the old cubins."""
    before = open_bundle(built.output).root
    built.manifest.write_text(built.manifest.read_text().replace("n > 0", "n > 1"))
    report = built.build()
    assert built.compiled() == []
    assert report.root != before


def test_dry_run_knows_what_changed(built):
    """After an edit a dry run names the variants that depend on it, and why."""
    built.header("one").write_text("// another\n")
    report = built.build(dry_run=True)
    assert states(report) == ["stale", "cached", "cached"]
    assert "header kp/one.cuh changed" in report.outcomes[0].reasons[0]


def test_first_build_explains_itself(project):
    """A variant that the cache never saw says so."""
    assert reasons(project.build()) == [("never built before with this cache",)] * 3


def test_template_edit_is_explained(built):
    """The reason is the source, and nothing else."""
    built.template.write_text(built.template.read_text().replace("{}", "{ out[0] = n; }"))
    assert [len(found) for found in reasons(built.build())] == [1, 1, 1]
    assert built.compiled() == ENTRIES


def test_lost_cache_is_explained(built):
    """Nothing changed, but the cache was emptied."""
    shutil.rmtree(built.root / "cache" / "objects")
    assert reasons(built.build()) == [("the cache no longer holds it",)] * 3


def test_other_compiler_recompiles(built):
    """Another front end's bytes recompile everything; the reason names both."""
    other = compilers.toolchain(built.log, digest="3" * 64)
    report = build(built.options(), steps=built.steps(find=lambda *_, **__: other))
    assert (
        reasons(report)
        == [("front end changed: cuda-13.4 (nvrtc) 11111111… → cuda-13.4 (nvrtc) 33333333…",)] * 3
    )


def test_other_assembler_assembles_only(built):
    """Another ptxas takes the PTX from the cache."""
    other = compilers.toolchain(built.log, ptxas_digest="4" * 64)
    build(built.options(), steps=built.steps(find=lambda *_, **__: other))
    assert compilers.calls(built.log, "compile") == []
    assert compilers.calls(built.log, "assemble") == ENTRIES


def test_same_ptx_is_assembled_once(project):
    """A source that gives the PTX it gave before is not assembled again."""
    same = compilers.Compilers(
        compile=lambda source, *_: compilers.Ptx(text=f".entry {source.entry}\n"),
        assemble=compilers.assemble,
        inspect=compilers.inspect,
    )
    build(project.options(), steps=project.steps(compilers=same))
    project.template.write_text(project.template.read_text() + "// a comment\n")
    report = build(project.options(), steps=project.steps(compilers=same))
    assert states(report) == ["compiled"] * 3
    assert compilers.calls(project.log, "assemble") == ENTRIES


def test_edit_of_another_template(built):
    """A template that no variant uses leaves the bundle as it is."""
    before = stamp(built.output)
    (built.root / "templates" / "other.cu.j2").write_text("another kernel")
    assert states(built.build()) == ["cached"] * 3
    assert stamp(built.output) == before


def test_edit_during_a_build(project):
    """What was rendered while a header changed is never taken for what either text gives."""

    def render_and_edit(variant, *folders):
        source = render(variant, *folders)
        project.header("all").write_text("// edited\n")
        return source

    before = project.header("all").read_text()
    build(project.options(), steps=project.steps(render=render_and_edit))
    project.header("all").write_text(before)
    assert states(project.build()) == ["cached", "compiled", "compiled"]
