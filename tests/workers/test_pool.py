"""Workers give what one process gives, survive being killed, and end when they should."""

import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import pytest

from kernelpack.errors import CompileError, ToolchainError
from kernelpack.workers.garbage import rare_search
from kernelpack.workers.pool import GRACE_S, run_here, run_workers
from tests.fakes import work

RUNNERS = pytest.mark.parametrize("run", [run_here, run_workers])


def by_index(results):
    return sorted(results, key=lambda finished: finished.index)


@RUNNERS
def test_every_item_is_done(run):
    """Each item has one result, under its own index."""
    results = by_index(run(work.double, [1, 2, 3, 4, 5], 2))
    assert [finished.index for finished in results] == [0, 1, 2, 3, 4]
    assert [finished.value for finished in results] == [2, 4, 6, 8, 10]


@RUNNERS
def test_no_items(run):
    """Nothing to do gives nothing."""
    assert list(run(work.double, [], 2)) == []


@RUNNERS
def test_error_is_the_items(run):
    """An error a user can meet fails its item, whole, and no other."""
    results = by_index(run(work.refuse_odd, [1, 2], 2))
    assert isinstance(results[0].error, CompileError)
    assert (results[0].error.what, results[0].error.where) == ("1 is odd", "here")
    assert results[1].value == 2


def test_workers_multiply_in_one_thread(monkeypatch):
    """Each has a core; whoever starts them keeps what it was asked for."""
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    (finished,) = run_workers(work.variable, ["OMP_NUM_THREADS"], 2)
    assert (finished.value, os.environ["OMP_NUM_THREADS"]) == ("1", "7")


def test_workers_search_for_cycles_less_often():
    """Whoever starts them, and whoever searches less for a while, does as before afterwards."""
    before = gc.get_threshold()
    (finished,) = run_workers(work.search_for_cycles_after, [0], 1)
    with rare_search():
        assert gc.get_threshold()[0] == finished.value > before[0]
    assert gc.get_threshold() == before


@pytest.mark.parametrize(
    ("short", "says"), [("/tmp", "1\n"), ("", "{deep}: workers cannot be started there (AF_UNIX")]
)
def test_temporary_files_too_deep_for_a_socket(tmp_path, short, says):
    """Where a socket's path would be too long it lies elsewhere; if nowhere, the error says so."""
    deep = tmp_path / ("t" * 120)
    deep.mkdir()
    code = (
        "from kernelpack import process\n"
        f"process.SHORT_FOLDERS = {(short,)}\n"
        "from kernelpack.workers.pool import run_workers\n"
        "from kernelpack.errors import ToolchainError\n"
        "try: print(*(done.value for done in run_workers(len, ['a'], 1)))\n"
        "except ToolchainError as error: print(error)"
    )
    known = {**os.environ, "TMPDIR": str(deep)}
    run = [sys.executable, "-c", code]
    said = subprocess.run(run, env=known, capture_output=True, text=True, check=False)
    assert said.stdout.startswith(says.format(deep=deep))
    assert bool(short) or f"than its {len(str(deep))} characters in TMPDIR" in said.stdout


def test_interrupt_is_ours():
    """A Ctrl-C at the terminal reaches neither workers nor what they come from; and reaches us."""
    assert [finished.value for finished in run_workers(work.hears_interrupts, [0], 1)] == [False]
    assert work.hears_interrupts(0)


def test_bug_is_raised():
    """What nobody foresaw ends the run, with the worker's traceback."""
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        list(run_workers(work.divide_by, [0], 1))


def test_killed_item_is_tried_again_alone(tmp_path):
    """A killed worker's item gets a second try when nothing else runs, and says so."""
    items = [(tmp_path, True), (tmp_path, False), (tmp_path, False), (tmp_path, False)]
    results = by_index(run_workers(work.die_once, items, 2))
    assert [finished.killed_by for finished in results].count("SIGKILL") == 1
    again = next(finished for finished in results if finished.killed_by)
    assert len(again.value) == 1


def test_item_killed_twice_fails(tmp_path):
    """A second death is the item's error, and names the signal."""
    (finished,) = run_workers(work.die, [tmp_path], 2)
    assert isinstance(finished.error, ToolchainError)
    assert "SIGKILL" in finished.error.what
    assert len(list(tmp_path.glob("call.*"))) == 2


def test_killed_compiler_is_tried_again(tmp_path):
    """A compiler that was killed under a living worker counts as killed too."""
    (finished,) = run_workers(work.lose_compiler_once, [tmp_path], 2)
    assert (finished.value, finished.killed_by) == ("compiled", "SIGKILL")


@pytest.mark.parametrize(("available", "most"), [(1, 1), (2**60, 2)])
def test_memory_bounds_the_jobs(tmp_path, available, most):
    """With memory for one job, one runs at a time; at least one always does."""
    results = run_workers(work.count_running, [tmp_path] * 4, 2, available)
    assert max(finished.value for finished in results) == most


def test_scratch_goes_with_the_run():
    """Temporary files of workers lie in a folder that is removed with them."""
    (finished,) = run_workers(work.scratch, [0], 1)
    assert Path(finished.value).name.startswith("kernelpack-")
    assert not Path(finished.value).exists()


def _run_until_interrupted(log):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # see tests.programs
    tempfile.tempdir = str(log / "temporary")
    with suppress(KeyboardInterrupt):
        list(run_workers(work.linger, [log, log, log], 3))
        os._exit(1)


def _workers(log):
    """The process ids of workers that still run."""
    pids = [path.suffix[1:] for path in log.glob("worker.*")]
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.fixture
def running(tmp_path):
    """Another process with three workers, each in the middle of something long."""
    (tmp_path / "temporary").mkdir()
    process = get_context("spawn").Process(target=_run_until_interrupted, args=(tmp_path,))
    process.start()
    work.wait_for(lambda: len(_workers(tmp_path)) == 3)
    return process


def test_interrupt_ends_everything(running, tmp_path):
    """Ctrl-C leaves no worker, no child of one and no temporary file, and takes no minute."""
    start = time.monotonic()
    os.kill(running.pid, signal.SIGINT)
    running.join()
    assert running.exitcode == 0
    assert time.monotonic() - start < GRACE_S + 1
    assert _workers(tmp_path) == []
    assert list((tmp_path / "temporary").iterdir()) == []


def test_workers_end_with_their_parent(running, tmp_path):
    """Where the process that builds is killed, its workers end by themselves."""
    running.kill()
    running.join()
    work.wait_for(lambda: not _workers(tmp_path), seconds=10)


def test_asked_to_end_while_a_folder_is_made(tmp_path, monkeypatch):
    """Nobody knows the folder yet; it is gone all the same."""
    make = tempfile.mkdtemp

    def interrupted(suffix=None, prefix=None, folder=None):
        made = make(suffix, prefix, folder)
        if prefix == "kernelpack-":
            signal.raise_signal(signal.SIGTERM)
        return made

    def leave(*_):
        raise SystemExit

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(tempfile, "mkdtemp", interrupted)
    before = signal.signal(signal.SIGTERM, leave)
    try:
        with pytest.raises(SystemExit):
            list(run_workers(work.double, [1], 1))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert list(tmp_path.glob("kernelpack-*")) == []
