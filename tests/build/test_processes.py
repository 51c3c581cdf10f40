"""Builds in worker processes, in many at once, and one that is killed."""

import os
from collections import Counter
from multiprocessing import get_context

import pytest

from kernelpack.build.pipeline import build
from kernelpack.workers.pool import run_workers
from tests.build.bench import states
from tests.fakes import compilers
from tests.fakes.project import ENTRIES, make_project
from tests.fakes.work import wait_for

FORK, SPAWN = get_context("fork"), get_context("spawn")


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
