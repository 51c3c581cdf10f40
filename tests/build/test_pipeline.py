"""A build compiles what changed and nothing else, and replaces a bundle whole or not at all."""

import errno
import shutil
from pathlib import Path

import pytest

from kernelpack.build.options import State
from kernelpack.build.pipeline import build
from kernelpack.bundle.reader import open_bundle, twin_of
from kernelpack.cache.disk import Disk
from kernelpack.cache.store import Store
from kernelpack.errors import (
    BudgetError,
    BundleError,
    CacheError,
    CompileError,
    KernelpackError,
    ManifestError,
)
from kernelpack.spec.arch import Arch
from tests.build.bench import IDS, stamp, states
from tests.fakes.project import ENTRIES, make_project


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


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("cost: n", f"cost: {'n + (' * 70}n{')' * 70}", "is too long: 141 words, 71 deep"),
        ("there is nothing to fill", "x" * 5000, "a text of 5000 bytes: a bundle holds at most"),
        ("n: elements", f"n: {'x' * 5000}", "a text of 5000 bytes: a bundle holds at most"),
    ],
)
def test_what_no_bundle_holds(project, old, new, says):
    """What does not fit the format is reported before a compiler starts."""
    project.manifest.write_text(project.manifest.read_text().replace(old, new))
    report = project.build()
    assert says in report.failures[0].error.what
    assert (len(report.failures), project.compiled()) == (3, [])


def test_dry_run_makes_nothing(project):
    """A dry run says what would be compiled, and leaves no trace."""
    assert states(project.build(dry_run=True)) == ["stale"] * 3
    assert project.compiled() == []
    assert not project.output.parent.exists()
    assert not (project.root / "cache").exists()


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
    with pytest.raises(KernelpackError, match="no variant for sm_100a") as caught:
        project.build(targets=(Arch("sm_100a"),))
    assert caught.value.hint == "targets of the manifests: sm_90a"


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

    def compile(self, count):
        self.heard.append(f"compiling {count}")

    def begin(self, total):
        self.total = total

    def tell(self, outcome):
        self.heard.append(outcome.variant_id)

    def pack(self):
        self.heard.append("packing")


def test_progress_hears_of_each(project):
    """A watcher gets the counts first, then each variant once, then the packing."""
    watcher = Watcher()
    report = build(project.options(), watcher, project.steps())
    first, *heard, last = watcher.heard
    assert (watcher.total, first) == (3, "compiling 3")
    assert (sorted(heard), last) == (IDS, "packing")
    assert 0 < report.packing_seconds < report.seconds


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


@pytest.fixture
def not_ours(monkeypatch, project):
    """The project's cache is another user's: it is read, and nothing can be made or moved in it."""
    mine, move = Path.mkdir, Disk.rename

    def refuse(path):
        if project.root / "cache" in (path, *path.parents):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

    def make(path, *given, **words):
        refuse(path)
        mine(path, *given, **words)

    def rename(disk, source, target):
        refuse(target)
        move(disk, source, target)

    def write(disk, path, data):
        refuse(path)
        path.write_bytes(data)

    monkeypatch.setattr(Path, "mkdir", make)
    monkeypatch.setattr(Disk, "rename", rename)
    monkeypatch.setattr(Disk, "write", write)


@pytest.mark.parametrize("keep", ["size=2", ""])
def test_a_cache_of_another_user(project, not_ours, keep):
    """What it lacks is made and not kept, with one line of why; the bundle is whole."""
    report = project.build(keep=keep)
    assert set(states(report)) == {State.COMPILED}
    assert report.trouble.endswith(
        "the cache cannot be used (Permission denied); what was made is not kept"
    )
    assert len(open_bundle(project.output)) == len(report.outcomes)
    assert not (project.root / "cache" / "objects").exists()


def test_a_damaged_object_of_another_user(built, monkeypatch, request):
    """One that cannot be set aside is made again, and stays."""
    good = built.output.read_bytes()
    for path in (built.root / "cache" / "objects").rglob("*"):
        if path.is_file():
            path.write_bytes(b"damaged")
    request.getfixturevalue("not_ours")
    assert set(states(built.build())) == {State.COMPILED}
    assert built.output.read_bytes() == good
