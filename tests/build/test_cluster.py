"""A build over a cluster: the same function, the same bytes, whoever is killed meanwhile."""

import sys
from collections.abc import Iterator
from functools import partial

import dask
import pytest
from distributed import LocalCluster

from kernelpack.build import cluster
from kernelpack.build.cluster import Cluster, settle
from kernelpack.build.make import Task
from kernelpack.build.pipeline import build
from kernelpack.bundle.reader import twin_of
from kernelpack.cache.location import default_root
from kernelpack.errors import CompileError, KernelpackError, ToolchainError
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Source
from kernelpack.toolchain.locate import find
from tests.fakes import compilers, work
from tests.fakes.project import ENTRIES, make_project

SOURCE = Source(variant_id="fill", entry="fill_1", name="fill.cu.j2", text="", headers=())


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of two workers, each a process that is started anew where it is killed."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=60
        ) as local,
    ):
        yield local.scheduler_address


@pytest.fixture
def project(tmp_path):
    return make_project(tmp_path / "project")


def spread(project, scheduler, **changes):
    """Build over the cluster; the made-up compilers are the same everywhere."""
    steps = project.steps(cluster=partial(Cluster, settle=work.same))
    return build(project.options(scheduler=scheduler, **changes), steps=steps)


def both(path):
    return path.read_bytes(), twin_of(path).read_bytes()


def states(report):
    return [outcome.state.value for outcome in report.outcomes]


def by_index(results):
    return sorted(results, key=lambda finished: finished.index)


def test_the_same_bytes(project, scheduler, tmp_path):
    """Compiled by workers, a bundle is that of a local build; the cache has the outcomes."""
    report = spread(project, scheduler)
    assert states(report) == ["compiled"] * 3
    assert project.compiled() == ENTRIES
    project.build(cache_dir=tmp_path / "cache", output=tmp_path / "local.kpk")
    assert both(project.output) == both(tmp_path / "local.kpk")


def test_a_killed_worker_changes_nothing(project, scheduler, tmp_path):
    """A worker that is killed in the middle of a build costs time, and no byte."""
    project.order(2, "kill 1")
    steps = project.steps()
    (project.log / "compile.fill_2.earlier").touch()
    local = project.options(output=tmp_path / "local.kpk", cache_dir=tmp_path / "cache")
    assert states(build(local, steps=steps)) == ["compiled"] * 3
    project.compiled()
    assert states(spread(project, scheduler)) == ["compiled"] * 3
    assert project.compiled().count("fill_2") == 2
    assert both(project.output) == both(tmp_path / "local.kpk")


def test_products_come_home(project, scheduler):
    """What workers made is in the cache of the machine that builds, whatever they share."""
    spread(project, scheduler)
    project.compiled()
    project.header("one").write_text("// another\n")
    assert states(project.build()) == ["compiled", "cached", "cached"]


def test_error_is_the_items(scheduler):
    """A user's error on a worker fails its item alone."""
    results = by_index(Cluster(scheduler, work.same)(work.refuse_odd, [2, 3, 4], 1))
    assert [finished.value for finished in results] == [2, None, 4]
    assert isinstance(results[1].error, CompileError)


def test_bug_is_raised(scheduler):
    """Any other error on a worker is ours, and raised."""
    with pytest.raises(ZeroDivisionError):
        list(Cluster(scheduler, work.same)(work.divide_by, [0], 1))


def test_item_that_kills_every_worker(scheduler, tmp_path):
    """An item that no worker survives fails by name."""
    (finished,) = Cluster(scheduler, work.same)(work.die, [tmp_path], 1)
    assert isinstance(finished.error, ToolchainError)
    assert "every worker that compiled it was killed" in str(finished.error)


def test_another_kernelpack_is_refused(scheduler, monkeypatch):
    """Where a worker runs other code than ours, its products would have other keys."""
    monkeypatch.setattr(cluster, "code_digest", lambda: "0" * 64)
    (finished,) = Cluster(scheduler, work.same)(work.double, [1], 1)
    assert "runs another kernelpack than the machine that builds" in str(finished.error)


def test_nobody_answers(monkeypatch):
    """An address without a scheduler is named."""
    monkeypatch.setattr(cluster, "PATIENCE_S", 0.2)
    with pytest.raises(KernelpackError, match=r"tcp://127.0.0.1:9: no dask scheduler answers"):
        list(Cluster("tcp://127.0.0.1:9")(work.double, [1], 1))


def test_dask_is_missing(monkeypatch):
    """Without the extra, the error says what to install."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(KernelpackError, match=r"pip install '\.\[dask\]'"):
        list(Cluster("tcp://127.0.0.1:9")(work.double, [1], 1))


def task(tmp_path, toolchain):
    return Task(source=SOURCE, arch=Arch("sm_90a"), toolchain=toolchain, cache=tmp_path / "cache")


def test_other_compilers_are_refused(tmp_path, monkeypatch):
    """A worker's toolchain of the same name is the same to the byte, or it is not used."""
    monkeypatch.setattr(cluster, "find", lambda *_, **__: compilers.toolchain(tmp_path, digest="3"))
    cluster._found.cache_clear()
    with pytest.raises(ToolchainError, match=r"its cuda-13.4 \(nvrtc\) is not that of the machine"):
        settle(task(tmp_path, compilers.toolchain(tmp_path)))
    cluster._found.cache_clear()


@pytest.mark.toolchain
def test_a_worker_uses_what_it_has(tmp_path):
    """A worker's own compilers, and its own cache where ours is not there."""
    ours = find()
    settled = settle(task(tmp_path, ours))
    assert (settled.toolchain, settled.cache) == (ours, default_root())


@pytest.mark.toolchain
def test_a_shared_cache_is_used(tmp_path):
    """A cache on a disk that both machines see serves both."""
    (tmp_path / "cache").mkdir()
    assert settle(task(tmp_path, find())).cache == tmp_path / "cache"
