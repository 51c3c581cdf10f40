"""`kernelpack emulate`, without a program that is compiled for it."""

import json
import sys
from pathlib import Path

import pytest

from kernelpack.cli.main import main
from kernelpack.emulate import standin
from tests.emulate.images import PTX, UNCOMPRESSED, elf, fat_binary


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder instead of the stand-in: no program here calls CUDA."""
    monkeypatch.setattr(standin, "build", lambda _cache, _includes: tmp_path / "libraries")
    monkeypatch.setattr(standin, "check", lambda _folder: None)


def test_libraries(kernelpack, tmp_path):
    """The folder to link against is printed, and nothing runs."""
    assert kernelpack("emulate", "--libraries").out == f"{tmp_path / 'libraries'}\n"


def test_no_program(kernelpack):
    """Without a program there is nothing to run."""
    said = kernelpack("emulate")
    assert (said.code, said.out) == (2, "")
    assert "Missing argument 'PROGRAM'" in said.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--device", "b400", "x"], "'b400' is not one of 'b200', 'b300', 'h100'"),
        (["--level", "loud", "x"], "'loud' is not one of"),
        (["--report", "nowhere/report.json", "x"], "nowhere: there is no such folder"),
        (["no-such-program"], "no-such-program: no such program"),
        (["--schedule", "bogus", "x"], "no schedule `bogus`"),
        (["--schedule", "fare", "x"], "did you mean `fair`? schedules: eager, fair, lazy, st"),
        (["--schedule", "overlapping", "x"], "`overlapping` launches a kernel twice"),
        (["--warm", "x"], "--warm is about --predict"),
        (["--multiprocessors", "99999999999", "x"], "is not in the range 1<=x<=1024"),
    ],
)
def test_mistakes(kernelpack, words, says):
    """A wrong word is named."""
    said = kernelpack("emulate", *words)
    assert said.code != 0
    assert says in said.err


def test_report_over_the_program(kernelpack, tmp_path):
    """A report does not replace the program it is of."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    said = kernelpack("emulate", "--report", program, program)
    assert (said.code, program.read_text()) == (1, "#!/bin/sh\n")
    assert f"{program}: is not written over" in said.err


@pytest.mark.parametrize("code", [0, 7])
def test_the_program_s_own_code(kernelpack, tmp_path, code):
    """Options after the program are its own, its exit code is ours, and the report says it."""
    report = tmp_path / "report.json"
    exits = f"import sys; sys.exit({code})"
    said = kernelpack("emulate", "--report", report, sys.executable, "-c", exits, "--level")
    assert said.code == code
    assert (
        "0 launches, 0 warp instructions, 0 findings and 0 errors (0 expected), 0 refused"
        in said.err
    )
    assert json.loads(report.read_text())["returncode"] == code


def test_a_program_of_this_folder(kernelpack, tmp_path, monkeypatch):
    """`./true` is this folder's, not the one on PATH."""
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "true"
    program.write_text("#!/bin/sh\nexit 7\n")
    program.chmod(0o755)
    assert kernelpack("emulate", "./true").code == 7


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1", "no KERNELS that map patterns to functions"),
        ("KERNELS = 5", "no KERNELS that map patterns to functions"),
        ("KERNELS = {'*': 5}", "no KERNELS that map patterns to functions"),
        ("KERNELS = {", "not Python: "),
    ],
)
def test_natives_that_are_none(kernelpack, tmp_path, text, says):
    """An unusable file of native kernels is reported before the program starts."""
    path = tmp_path / "native.py"
    path.write_text(text)
    said = kernelpack("emulate", "--native", path, sys.executable, "-c", "1")
    assert (said.code, says in said.err) == (1, True)


def test_kernels_that_no_launch_has(kernelpack):
    """A pattern that matches nothing checks nothing: the run does not count as right."""
    said = kernelpack("emulate", "--kernels", "TYPO", sys.executable, "-c", "1")
    assert said.code == 1
    assert "--kernels `TYPO` matches no launch; launched: none" in said.err


SHIFTS = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry _Z4movePf() { .reg .b32 %r<2>; tcgen05.shift.cta_group::1.down [%r1]; ret; }
.visible .entry stay() { ret; }
"""


@pytest.mark.parametrize("kind", ["text", "program"])
def test_a_check_of_what_is_modelled(kernelpack, tmp_path, kind):
    """Kernels that would not run are named with what they use; nothing is started."""
    path, raw = tmp_path / "program", SHIFTS.encode()
    image = fat_binary((PTX, UNCOMPRESSED, raw))
    path.write_bytes(raw if kind == "text" else elf({".nv_fatbin": image}))
    said = kernelpack("emulate", "--check", str(path))
    assert said.code == 1
    assert said.out.splitlines() == [
        "kernel move: not modelled: `tcgen05.shift.cta_group::1.down` at ptx:4",
        "2 kernels, 1 with instructions that are not modelled",
    ]
    said = kernelpack("emulate", "--check", "--json", str(path))
    assert (said.code, json.loads(said.out)) == (
        1,
        [
            {"kernel": "move", "refused": ["`tcgen05.shift.cta_group::1.down` at ptx:4"]},
            {"kernel": "stay", "refused": []},
        ],
    )


def test_a_check_of_a_program_without_kernels(kernelpack):
    """That there is nothing to check is an error."""
    said = kernelpack("emulate", "--check", sys.executable)
    assert (said.code, "no kernels inside" in said.err) == (1, True)


def test_a_program_without_kernels(kernelpack):
    """It runs, its exit code is the verb's, and a note says that nothing was tried."""
    said = kernelpack("emulate", sys.executable, "-c", "print(3)")
    assert said.code == 0
    assert "note: the program launched no kernel" in said.err


def test_a_signal(kernelpack):
    """A program that a signal ended is reported, with a shell's exit code."""
    said = kernelpack("emulate", sys.executable, "-c", "import os; os.abort()")
    assert (said.code, "ended by a signal: Aborted" in said.err) == (134, True)


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (["--rules", "race"], "race (error, PTX ISA 8.10): two threads access one place"),
        (["--rules"], "bounds (error, PTX ISA 8.2): an access outside every allocation"),
    ],
)
def test_rules(kernelpack, words, first):
    """They are printed, and nothing runs."""
    said = kernelpack("emulate", *words)
    assert (said.code, said.out.startswith(first)) == (0, True)


def test_an_unknown_rule(kernelpack):
    """The error suggests the nearest name."""
    assert "did you mean `race`" in kernelpack("emulate", "--rules", "rcae").err


def test_json(capfd):
    """The report is on stdout, alone: what the program prints there goes to stderr."""
    with pytest.raises(SystemExit) as left:
        main(["emulate", "--json", sys.executable, "-c", "print('hello')"])
    said = capfd.readouterr()
    assert (left.value.code, json.loads(said.out)["returncode"]) == (0, 0)
    assert "hello\n" in said.err
