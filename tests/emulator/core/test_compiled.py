"""The core's library: what compiles it, where it is kept, and what is said where it cannot be."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelpack.emulator.core import attempt, compiled
from kernelpack.emulator.events import Bus
from kernelpack.emulator.machine.bad_access import reporter
from kernelpack.emulator.prepare import Dependent, prepare
from kernelpack.emulator.ptx.parser import parse
from kernelpack.emulator.run import run
from kernelpack.emulator.schedule import Schedule
from kernelpack.errors import ToolchainError
from tests.emulator.kernel import launch, prepared


@pytest.fixture
def nothing(monkeypatch):
    """A machine without a compiler."""
    monkeypatch.setattr(compiled.shutil, "which", lambda _: None)
    monkeypatch.setattr(compiled, "find_spec", lambda _: None)
    attempt.core.cache_clear()
    yield
    attempt.core.cache_clear()


def test_no_compiler(nothing, tmp_path):
    """The error says what to install."""
    with pytest.raises(ToolchainError, match="no C\\+\\+ compiler") as error:
        compiled.library(tmp_path)
    assert "ziglang" in error.value.hint


def test_a_compiler_from_a_package_index(nothing, monkeypatch):
    """Where the system has none, that of the package `ziglang` is taken."""
    monkeypatch.setattr(compiled, "find_spec", lambda name: name == "ziglang")
    assert compiled.compiler()[1:4] == ("-m", "ziglang", "c++")


def test_it_is_said_once(nothing, monkeypatch, capsys):
    """Then every launch runs on the Python engine, with the same outcome."""
    monkeypatch.setattr(attempt, "parent_process", lambda: None)
    steps = {launch("st.global.b32 [%mine], 7;")[0].steps for _ in range(2)}
    assert capsys.readouterr().err.count("runs without its compiled engine") == 1
    assert steps == {launch("st.global.b32 [%mine], 7;", compiled=False)[0].steps}


def test_a_long_compilation_is_announced(monkeypatch, capsys):
    """Whoever waits for half a minute is told why; a library that is kept needs no word."""
    monkeypatch.setattr(attempt, "parent_process", lambda: None)
    monkeypatch.setattr(attempt, "Core", lambda *_: "loaded")
    monkeypatch.setattr(attempt, "library", lambda _: None)
    said = []
    for kept in (False, True):
        monkeypatch.setattr(attempt, "is_kept", lambda _, kept=kept: kept)
        assert attempt.core.__wrapped__() == "loaded"
        said.append(capsys.readouterr().err)
    assert said == [
        "note: compiling the emulator's engine, once on this machine: about half a minute\n",
        "",
    ]


def test_a_file_that_others_may_write_is_not_loaded(tmp_path):
    """What lies in the cache is code: only the user's own files count."""
    found = tmp_path / "core.so"
    found.write_bytes(b"")
    found.chmod(0o666)
    assert not compiled._is_own(found)
    found.chmod(0o644)
    assert compiled._is_own(found)


def test_a_doubt_leaves_memory_as_it_was():
    """The Python engine begins anew, from the same bytes and states."""
    made = prepared("st.global.b32 [%mine], 7; ld.global.b32 %r1, [%mine+8192]; bar.sync 0; trap;")
    before = made.memory.bytes.tobytes(), made.memory.state.tobytes()
    schedule = Schedule.parse("eager")
    first = Dependent(program=parse(made.text), plan=made.plan)
    ((launched, code),) = prepare([first], made.memory, schedule, reporter(Bus()))
    ran = attempt.attempt(launched, code, made.memory, schedule, step_limit=1000)
    if isinstance(ran, str):
        pytest.skip(ran)
    assert ran.doubt.startswith("a trap")
    assert before == (made.memory.bytes.tobytes(), made.memory.state.tobytes())


def test_the_python_engine_alone():
    """A caller may ask for it; the outcome is the same."""
    made, other = prepared("st.global.b32 [%mine], 7;"), prepared("st.global.b32 [%mine], 7;")
    alone = run(made.text, made.plan, made.memory, compiled=False)
    fast = run(other.text, other.plan, other.memory)
    assert (alone.steps, alone.findings) == (fast.steps, fast.findings)
    assert made.memory.bytes.tobytes() == other.memory.bytes.tobytes()


def test_the_compiler_of_the_package_keeps_its_files_in_a_folder_of_ours(
    nothing, monkeypatch, tmp_path
):
    """A command's environment has no home, where zig would keep them."""
    seen = {}

    def run(_command, env):
        seen.update(env)
        return compiled.process.Completed(command=(), returncode=0, stdout="", stderr="")

    monkeypatch.setattr(compiled.process, "run", run)
    compiled.run_compiler(["zig"], tmp_path)
    assert seen["ZIG_GLOBAL_CACHE_DIR"] == seen["ZIG_LOCAL_CACHE_DIR"] == str(tmp_path)
    assert seen["PATH"]


WAITS = """#!/bin/sh
echo $$ >> "$STARTED"
sleep 60
"""
COMPILES = """
import signal, sys
from pathlib import Path
from kernelpack import process
from kernelpack.emulator.core import compiled
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores keys
process.ENVIRONMENT["STARTED"] = sys.argv[2]
compiled.compiler = lambda: (sys.argv[1],)
compiled.library(Path(sys.argv[3]))
"""


def test_a_key_ends_the_compilers(tmp_path):
    """Whoever does not want to wait for the engine need not wait for its compilers."""
    fake, started = tmp_path / "c++", tmp_path / "started"
    fake.write_text(WAITS)
    fake.chmod(0o755)
    given = str(fake), str(started), str(tmp_path / "cache")
    command = [sys.executable, "-c", COMPILES, *given]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as child:
        try:
            wait_for(lambda: started.exists() and len(started.read_text().split()) == 2, child)
            child.send_signal(signal.SIGINT)
            assert child.wait(20) != 0
        finally:
            child.kill()
    for number in started.read_text().split():
        assert not Path(f"/proc/{number}").exists()
    assert len(started.read_text().split()) == 2


def wait_for(holds, child):
    """Until something holds, as long as a child runs."""
    end = time.monotonic() + 30
    while not holds():
        assert child.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)


class Watch:
    """Hears why the Python engine runs a launch."""

    def __init__(self):
        self.why = []

    def look(self, steps, place):
        pass

    def again(self, why):
        self.why.append(why)

    def stopped(self, steps, stands):
        pass


@pytest.mark.parametrize(("text", "times"), [("st.global.b32 [%mine], 7;", 0), ("trap;", 1)])
def test_a_watch_hears_of_a_doubt(text, times):
    """It does not hear of launches that the compiled engine runs to their end."""
    watch = Watch()
    launch(text, watch=watch)
    assert len(watch.why) == times
    assert all(watch.why)


def test_a_watch_is_told_that_there_is_no_engine(nothing):
    """The reason is the one that was said at the start."""
    watch = Watch()
    launch("st.global.b32 [%mine], 7;", watch=watch)
    assert "C++ compiler" in watch.why[0]
