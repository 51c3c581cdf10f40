"""The one subprocess."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kernelpack.errors import ToolchainError
from kernelpack.process import beside, deaf, noted, orderly, run
from tests.programs import hear_interrupts

PYTHON = sys.executable


def python(code: str) -> list[str]:
    return [PYTHON, "-c", code]


def is_gone(pid: int) -> bool:
    """Whether a process ended; one that nobody has collected yet counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_until_gone(pid: int) -> bool:
    return any(is_gone(pid) or time.sleep(0.02) for _ in range(250))


def test_both_streams_and_the_status_are_kept() -> None:
    """What a command writes and how it ends come back as one value."""
    done = run(python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"))
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_standard_input_is_the_text_given() -> None:
    """A command reads the text it is given."""
    assert run(python("print(input())"), stdin="hello").stdout == "hello\n"


def test_standard_input_is_empty_by_default() -> None:
    """A command that reads gets the end of the file, never the caller's terminal."""
    assert run(python("import sys; print(len(sys.stdin.read()))")).stdout == "0\n"


def test_it_runs_where_it_is_told(tmp_path: Path) -> None:
    """`cwd` is where the command runs."""
    done = run(python("import os; print(os.getcwd())"), cwd=tmp_path)
    assert Path(done.stdout.strip()) == tmp_path.resolve()


def test_the_environment_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of this process does not reach a compiler."""
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-G")
    done = run(python("import os; print('NVCC_APPEND_FLAGS' in os.environ)"))
    assert done.stdout == "False\n"


def test_words_are_not_read_by_a_shell() -> None:
    """A word with a shell's signs is one word."""
    word = "$(echo no); *"
    assert run([PYTHON, "-c", "import sys; print(sys.argv[1])", word]).stdout == f"{word}\n"


def test_bytes_that_are_not_text_are_kept_as_escapes() -> None:
    """A broken message can still be shown."""
    done = run(python(r"import sys; sys.stdout.buffer.write(b'a\xff')"))
    assert done.stdout == "a\\xff"


def test_the_signal_that_ended_it_has_a_name() -> None:
    """A killed command differs from one that failed."""
    assert run(python("import os; os.kill(os.getpid(), 9)")).killed_by == "SIGKILL"


def test_a_command_that_ends_was_killed_by_nothing() -> None:
    """A status that is not a signal has no name."""
    assert run(python("raise SystemExit(1)")).killed_by == ""


def test_a_missing_program_is_named() -> None:
    """The error says which program is not there."""
    with pytest.raises(ToolchainError, match="/no/such/ptxas: no such program"):
        run(["/no/such/ptxas"])


def test_a_missing_folder_is_named() -> None:
    """The error separates a missing folder from a missing program."""
    with pytest.raises(ToolchainError, match="no such folder to run in: /no/such/folder"):
        run([PYTHON], cwd=Path("/no/such/folder"))


def test_a_file_that_is_no_program_is_named(tmp_path: Path) -> None:
    """A file without the right to be executed is an error with its name."""
    (tmp_path / "ptxas").write_text("")
    with pytest.raises(ToolchainError, match=r"ptxas: cannot be executed: Permission denied"):
        run([str(tmp_path / "ptxas")])


CHILD = "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; \
time.sleep(60)']); open(sys.argv[1], 'w').write(str(p.pid)); time.sleep(60)"


def test_a_timeout_ends_the_children_too(tmp_path: Path) -> None:
    """After a timeout neither the command nor what it started is left."""
    with pytest.raises(ToolchainError, match="ran longer than 1 s"):
        run([PYTHON, "-c", CHILD, str(tmp_path / "pid")], timeout=1)
    assert wait_until_gone(int((tmp_path / "pid").read_text()))


def test_an_interrupt_ends_the_children_too(tmp_path: Path) -> None:
    """After a Ctrl-C neither the command nor what it started is left."""
    parent = subprocess.Popen(
        python(
            "import sys; from kernelpack.process import run\n"
            f"run([sys.executable, '-c', {CHILD!r}, {str(tmp_path / 'pid')!r}])"
        ),
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        preexec_fn=hear_interrupts,
    )
    assert any((tmp_path / "pid").exists() or time.sleep(0.02) for _ in range(500))
    time.sleep(0.1)
    parent.send_signal(signal.SIGINT)
    parent.wait(timeout=10)
    assert wait_until_gone(int((tmp_path / "pid").read_text()))


def test_a_program_beside_us_speaks_for_itself(capfd: pytest.CaptureFixture[str]) -> None:
    """It writes to our own streams, and its exit code can be waited for."""
    with beside(python("print('there'); raise SystemExit(3)"), env=dict(os.environ)) as program:
        assert program.wait() == 3
    assert capfd.readouterr().out == "there\n"


def test_a_program_beside_us_does_not_outlive_its_block() -> None:
    """What still runs at the end of the block is killed."""
    with beside(python("import time; time.sleep(60)"), env=dict(os.environ)) as program:
        assert program.poll() is None
    assert program.returncode == -signal.SIGKILL


def test_a_program_beside_us_that_is_missing() -> None:
    """A program that is not there is named."""
    with pytest.raises(ToolchainError, match="no such program"), beside(["nowhere"], env={}):
        pass


def test_a_sigterm_is_an_exit() -> None:
    """What runs beside us is ended, and the exit code is a shell's."""
    waits = python("import time; time.sleep(60)")
    with pytest.raises(SystemExit, match="143"), orderly(), beside(waits, env={}) as child:
        os.kill(os.getpid(), signal.SIGTERM)
    assert is_gone(child.pid)


def test_a_sigterm_is_as_before_afterwards() -> None:
    """What was done at a SIGTERM before is done again."""
    before = signal.getsignal(signal.SIGTERM)
    with orderly():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_deaf_to_what_another_thread_hears():
    """A signal may reach a thread of a library: its handler still runs afterwards."""
    heard, gone = [], threading.Event()
    other = threading.Thread(target=gone.wait)
    other.start()
    usual = signal.signal(signal.SIGUSR1, lambda number, _frame: heard.append(number))
    try:
        with deaf(signal.SIGUSR1):
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.05)
            assert heard == []
        assert heard == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, usual)
        gone.set()
        other.join()


@pytest.fixture
def _in_the_foreground():
    """Python's own handler of Ctrl-C, which it does not set where tests run in the background."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)


@pytest.mark.usefixtures("_in_the_foreground")
def test_a_noted_key_is_obeyed_afterwards() -> None:
    """The block goes on and sees what was heard; the exception comes where the block ends."""
    went_on = []

    def press() -> None:
        with noted() as heard:
            signal.raise_signal(signal.SIGINT)
            went_on.append(list(heard))

    with pytest.raises(KeyboardInterrupt):
        press()
    assert went_on == [[signal.SIGINT]]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_ignored_key_is_not_noted() -> None:
    """Who ignores it, such as a job in the background, goes on ignoring it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with noted() as heard:
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == []
