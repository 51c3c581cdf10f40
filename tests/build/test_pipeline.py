"""A build compiles what changed and nothing else, and replaces a bundle whole or not at all."""

import os
import shutil
import time
from collections import Counter
from multiprocessing import get_context

import pytest

from kernelpack.build.options import State
from kernelpack.build.pipeline import build
from kernelpack.build.schedule import run_workers
from kernelpack.bundle.merge import merge
from kernelpack.bundle.reader import open_bundle, twin_of
from kernelpack.bundle.shard import Shard
from kernelpack.cache.store import Store
from kernelpack.errors import (
    BudgetError,
    BundleError,
    CacheError,
    CompileError,
    KernelpackError,
    ManifestError,
)
from kernelpack.render.render import render
from kernelpack.spec.arch import Arch
from tests.fakes import compilers
from tests.fakes.project import ENTRIES, Project, make_project
from tests.fakes.work import wait_for

FORK, SPAWN = get_context("fork"), get_context("spawn")
IDS = [f"fill[arch=sm_90a,size={size}]" for size in (1, 2, 3)]


@pytest.fixture
def project(tmp_path):
    return make_project(tmp_path)


@pytest.fixture
def built(project):
    """A project that was built once; its log is empty again."""
    project.build()
    project.compiled()
    return project


def states(report):
    return [outcome.state.value for outcome in report.outcomes]


def reasons(report):
    return [outcome.reasons for outcome in report.outcomes]


def both(path):
    return path.read_bytes(), twin_of(path).read_bytes()


def stamp(path):
    return path.stat().st_ino, path.stat().st_mtime_ns


def test_first_build_compiles_all(project):
    """On an empty cache each variant is compiled once, and reported in order."""
    report = project.build()
    assert [outcome.variant_id for outcome in report.outcomes] == IDS
    assert states(report) == ["compiled"] * 3
    assert project.compiled() == ENTRIES


def test_bundle_holds_all(project):
    """The bundle has each variant, with the image that the assembler made."""
    report = project.build()
    bundle = open_bundle(project.output)
    assert sorted(variant.id for variant in bundle.variants()) == IDS
    assert bundle.image(IDS[0]).startswith(b"// sm_90a\n.entry fill_1\n")
    assert report.root == bundle.root
    assert report.written


def test_twin_holds_the_ptx(built):
    """Beside the bundle lies its twin, with the PTX that each entry names."""
    wanted = open_bundle(built.output).find(IDS[1]).ptx_digest
    assert ".entry fill_2" in open_bundle(twin_of(built.output)).ptx(wanted).text


def test_provenance_names_the_sources(built):
    """A bundle says which manifests, templates and headers it was made from."""
    assert set(open_bundle(built.output).provenance.sources) == {
        "manifests/fill.yaml",
        "templates/fill/kernel.cu.j2",
        "templates/include/kp/all.cuh",
        "templates/include/kp/one.cuh",
    }


def test_licences(project):
    """A source that states its licence is remembered with it; the others are not."""
    text = f"# SPDX-License-Identifier: MIT OR Apache-2.0\n{project.manifest.read_text()}"
    project.manifest.write_text(text)
    project.header("all").write_text("// SPDX-License-Identifier: BSD-3-Clause */\n")
    project.build()
    made = open_bundle(project.output).provenance
    headers = {"templates/include/kp/all.cuh": "BSD-3-Clause"}
    assert made.licences == {"manifests/fill.yaml": "MIT OR Apache-2.0", **headers}
    assert made.licence == "MIT OR Apache-2.0"


def test_second_build_does_nothing(built):
    """With nothing changed nothing is compiled, and the file is not touched."""
    before = stamp(built.output)
    report = built.build()
    assert states(report) == ["cached"] * 3
    assert built.compiled() == []
    assert stamp(built.output) == before
    assert not report.written


def test_lost_output_comes_from_the_cache(built):
    """A removed bundle comes back with the same bytes and without a compiler."""
    before = built.output.read_bytes()
    built.output.unlink()
    report = built.build()
    assert built.output.read_bytes() == before
    assert report.written
    assert built.compiled() == []


def test_damaged_output_is_replaced(built):
    """A bundle that is not what was built is written again."""
    before = built.output.read_bytes()
    built.output.write_bytes(before[:-1])
    built.build()
    assert built.output.read_bytes() == before


def test_same_bytes_from_two_folders(tmp_path):
    """Where a project lies decides nothing."""
    here, there = make_project(tmp_path / "here"), make_project(tmp_path / "else" / "there")
    here.build()
    there.build()
    assert here.output.read_bytes() == there.output.read_bytes()


def test_moved_project_is_cached(built, tmp_path_factory):
    """No absolute path takes part in a key."""
    there = Project(tmp_path_factory.mktemp("moved") / "project")
    shutil.copytree(built.root, there.root)
    assert states(there.build()) == ["cached"] * 3


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


def test_failure_stops_no_other(project):
    """A variant that fails is reported; the others are compiled all the same."""
    project.order(2, "refuse")
    report = project.build()
    assert states(report) == ["compiled", "failed", "compiled"]
    assert isinstance(report.failures[0].error, CompileError)
    assert not project.output.exists()


def test_failure_leaves_the_bundle(built):
    """A bundle is replaced only where nothing failed."""
    before = stamp(built.output)
    built.order(2, "refuse")
    report = built.build()
    assert stamp(built.output) == before
    assert (report.root, report.written) == ("", False)


def test_build_after_a_failure_compiles_the_rest(project):
    """What succeeded beside a failure is not done again."""
    project.order(2, "refuse")
    project.build()
    project.compiled()
    project.order(2, "better")
    assert states(project.build()) == ["cached", "compiled", "cached"]
    assert project.compiled() == ["fill_2"]


def test_render_error_is_the_variants(project):
    """A template that fails for one variant fails that one alone."""
    project.template.write_text(project.template.read_text() + "{{ [1, 2, 3][SIZE] }}")
    assert states(project.build()) == ["compiled", "compiled", "failed"]


@pytest.mark.parametrize(
    ("order", "says"), [("spills 8", "spills 8 bytes"), ("registers 65", "uses 65 registers")]
)
def test_budget_is_held(project, order, says):
    """A spill or a register too many fails the variant, also from the cache."""
    project.order(3, order)
    project.build()
    report = project.build()
    assert states(report) == ["cached", "cached", "failed"]
    assert isinstance(report.failures[0].error, BudgetError)
    assert says in report.failures[0].error.what
    assert report.failures[0].error.where == IDS[2]


def test_dry_run_makes_nothing(project):
    """A dry run says what would be compiled, and leaves no trace."""
    assert states(project.build(dry_run=True)) == ["stale"] * 3
    assert project.compiled() == []
    assert not project.output.parent.exists()
    assert not (project.root / "cache").exists()


def test_dry_run_knows_what_changed(built):
    """After an edit a dry run names the variants that depend on it, and why."""
    built.header("one").write_text("// another\n")
    report = built.build(dry_run=True)
    assert states(report) == ["stale", "cached", "cached"]
    assert "header kp/one.cuh changed" in report.outcomes[0].reasons[0]


def test_keep_filters(project):
    """Only the variants that `-k` keeps are built."""
    project.build(keep="size=1 or size=3")
    assert sorted(v.id for v in open_bundle(project.output).variants()) == [IDS[0], IDS[2]]


def test_keep_that_keeps_nothing(project):
    """A choice that leaves nothing is a mistake, and an id is shown."""
    with pytest.raises(KernelpackError, match="none of 3 variants") as caught:
        project.build(keep="size=4")
    assert IDS[0] in caught.value.hint


def test_target_without_a_variant(project):
    """A target that no manifest builds for is a mistake."""
    with pytest.raises(KernelpackError, match="no variant for sm_100a"):
        project.build(targets=(Arch("sm_100a"),))


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

    def render_and_edit(variant, templates):
        source = render(variant, templates)
        project.header("all").write_text("// edited\n")
        return source

    before = project.header("all").read_text()
    build(project.options(), steps=project.steps(render=render_and_edit))
    project.header("all").write_text(before)
    assert states(project.build()) == ["cached", "compiled", "compiled"]


def test_missing_manifest(built):
    """A manifest that is gone is the manifest's error."""
    built.manifest.unlink()
    with pytest.raises(ManifestError):
        built.build()


def test_damaged_object_is_made_again(built):
    """Damage in the cache costs a compile, never a wrong bundle."""
    before = built.output.read_bytes()
    _truncate_all(built.root / "cache" / "objects")
    built.build()
    assert built.output.read_bytes() == before
    assert built.compiled() == ENTRIES


def _truncate_all(folder):
    for path in folder.glob("??/*"):
        path.write_bytes(path.read_bytes()[:-1])


def test_unusable_cache_is_told_before_compiling(project):
    """A cache that cannot be written fails the build at once, not once a variant."""
    (project.root / "cache").write_text("a file")
    with pytest.raises(CacheError, match="KERNELPACK_CACHE_DIR"):
        project.build()
    assert project.compiled() == []


def test_output_that_cannot_be_written(project):
    """The error names the file; what was compiled stays in the cache."""
    project.output.parent.write_text("a file where the folder would be")
    with pytest.raises(BundleError):
        project.build()
    project.compiled()
    project.build(output=project.root / "other.kpk")
    assert project.compiled() == []


class Watcher:
    """A progress that keeps what it hears."""

    def __init__(self):
        self.total, self.heard = 0, []

    def begin(self, total):
        self.total = total

    def tell(self, outcome):
        self.heard.append(outcome.variant_id)


def test_progress_hears_of_each(project):
    """Whoever watches is told the count first, then each variant once."""
    watcher = Watcher()
    build(project.options(), watcher, project.steps())
    assert (watcher.total, sorted(watcher.heard)) == (3, IDS)


def test_workers_build_the_same(tmp_path):
    """Worker processes give the bytes that one process gives."""
    here, there = make_project(tmp_path / "here"), make_project(tmp_path / "there")
    here.build()
    build(there.options(), steps=there.steps(run=run_workers))
    assert here.output.read_bytes() == there.output.read_bytes()


def _build_in_workers(project):
    build(project.options(), steps=project.steps(run=run_workers))


def test_killed_build_resumes(project):
    """After kill -9 in the middle of a build, the next one compiles only what is missing."""
    project.order(3, "sleep 60")
    process = SPAWN.Process(target=_build_in_workers, args=(project,))
    process.start()
    wait_for(lambda: len(list((project.root / "cache" / "objects").glob("??/*"))) == 4)
    process.kill()
    process.join()
    project.compiled()
    project.order(3, "quick")
    assert states(project.build()) == ["cached", "cached", "compiled"]
    assert project.compiled() == ["fill_3"]


def _build_here(project, barrier, answers):
    barrier.wait()
    report = project.build(output=project.root / f"{os.getpid()}.kpk")
    answers.put((report.root, states(report)))


@pytest.fixture(scope="module")
def cold_start(tmp_path_factory):
    """The answers of 16 builds that start at once on an empty cache."""
    project = make_project(tmp_path_factory.mktemp("cold"))
    project.template.write_text(project.template.read_text() + "// sleep 0.05\n")
    barrier, answers = FORK.Barrier(16), FORK.Queue()
    processes = [
        FORK.Process(target=_build_here, args=(project, barrier, answers)) for _ in range(16)
    ]
    for process in processes:
        process.start()
    results = [answers.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
    return project, results


def test_cold_start_compiles_once(cold_start):
    """Sixteen processes on an empty cache compile each variant once."""
    project, _ = cold_start
    assert compilers.calls(project.log, "compile") == ENTRIES
    assert compilers.calls(project.log, "assemble") == ENTRIES


def test_cold_start_gives_one_bundle(cold_start):
    """All of them get the same bundle."""
    project, results = cold_start
    assert len({path.read_bytes() for path in project.root.glob("*[0-9].kpk")}) == 1
    assert len({root for root, _ in results}) == 1


def test_cold_start_tells_who_compiled(cold_start):
    """Whoever ran a step of a variant, PTX or cubin, says so; all others took it from the cache."""
    _, results = cold_start
    told = Counter(state for _, states in results for state in states)
    assert 3 <= told["compiled"] <= 6
    assert told["compiled"] + told["cached"] == 48


def test_cold_start_leaves_nothing(cold_start):
    """No temporary file outlives the race."""
    project, _ = cold_start
    assert list((project.root / "cache" / "temporary").iterdir()) == []


def test_cache_is_shared_by_choices(built):
    """A build of fewer variants takes them from the cache."""
    assert states(built.build(keep="size=2")) == [State.CACHED]
    assert Store(built.root / "cache").recall("fill.last.json") is not None


def test_cache_that_only_serves(built):
    """Where the cache holds everything but cannot be written, it is used as it is."""
    shutil.rmtree(built.root / "cache" / "temporary")
    (built.root / "cache" / "temporary").write_text("a file")
    report = built.build(keep="size=2 or size=3")
    assert (report.count(State.CACHED), len(open_bundle(built.output))) == (2, 2)
