"""`kernelpack trace`, on the small kernel of the verification's tests."""

import json
from pathlib import Path

import pytest

from kernelpack.kernels.registry import KERNELS
from tests.verify import small

WORDS = ("trace", "twice", "n=40", "--bundle", "x.kpk")
WILD = {32: small.ptx("st.global.f32 [%rd2+65536], %f1;", entry="twice_32")}


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    """The kernel is known, and its bundle lies where the command runs."""
    monkeypatch.setitem(KERNELS, "twice", small.DEFINITION)
    monkeypatch.chdir(tmp_path)
    small.bundle(tmp_path / "x.kpk")


def test_a_trace(kernelpack):
    """With nothing said of outputs, trace.json is written, and a line says what was run."""
    said = kernelpack(*WORDS)
    assert (said.code, said.err) == (0, "wrote trace.json\n")
    assert "variant   twice[arch=sm_100a,tile=32]\n" in said.out
    assert "grid      2x1x1 CTAs\n" in said.out
    events = json.loads(Path("trace.json").read_text())["traceEvents"]
    assert {event["args"]["name"] for event in events if event["name"] == "process_name"} == {
        "CTA (0, 0, 0)", "CTA (1, 0, 0)",
    }  # fmt: skip


def test_a_kernel_without_an_oracle(kernelpack, monkeypatch):
    """A trace compares nothing, so it needs none."""
    monkeypatch.delitem(KERNELS, "twice")
    said = kernelpack(*WORDS)
    assert (said.code, said.err) == (0, "wrote trace.json\n")
    assert "problem   n=40\n" in said.out


def test_a_picture_alone(kernelpack):
    """A picture may be asked for without a trace."""
    said = kernelpack(*WORDS, "--svg", "x.svg", "--ctas", 2)
    assert (said.code, said.err) == (0, "wrote x.svg\n")
    assert "twice on sm_100a" in Path("x.svg").read_text()
    assert not Path("trace.json").exists()


def test_both(kernelpack):
    """A trace and a picture of one run."""
    said = kernelpack(*WORDS, "-o", "t.json", "--svg", "x.svg")
    assert said.err == "wrote x.svg\nwrote t.json\n"


def test_a_run_that_ends_early(kernelpack, tmp_path):
    """The report has what ended it, before the count of findings."""
    texts = {32: small.ptx("bar.sync 0, 64;", entry="twice_32")}
    small.bundle(tmp_path / "x.kpk", texts)
    said = kernelpack(*WORDS)
    assert said.code == 1
    assert "ended by  Deadlock at cta (0, 0, 0) warp 0 " in said.out


def test_a_choice(kernelpack):
    """`-k` narrows what is selected from."""
    assert "twice[arch=sm_100a,tile=64]" in kernelpack(*WORDS, "-k", "tile=64").out


def test_a_wrong_kernel(kernelpack, tmp_path):
    """The emulator's findings are printed, and the trace is written all the same."""
    small.bundle(tmp_path / "x.kpk", WILD)
    said = kernelpack(*WORDS)
    assert said.code == 1
    assert "found: cta (0, 0, 0) warp 0 lane 0 — " in said.err
    assert Path("trace.json").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--schedule", "late"], "no schedule `late`"),
        (["--window", "9:3"], "--window: `9:3` is not a window"),
        (["--window", f"0:{'9' * 5000}"], "--window: `0:9999"),
        (["-k", "tile=7"], "no id holds `tile=7`"),
        (["n"], "`n` is not a size"),
        (["n=1", "n=2"], "`n` is given twice"),
        (["-o", "no/trace.json"], "there is no such folder"),
        (["--svg", "no/trace.svg"], "there is no such folder"),
        (["-o", "one.json", "--svg", "./one.json"], "one.json: is not written over"),
        (["-o", "other.kpk"], "other.kpk: is not written over"),
        (["--schedule", "starving:0:99"], "no warp to hold back"),
        (["--bundle", "x.ptx.kpk"], "give the bundle beside it, `x.kpk`"),
    ],
)
def test_wrong_words(kernelpack, words, says):
    """What cannot be run is refused, and nothing is written."""
    said = kernelpack(*WORDS, *words)
    assert (said.code, said.out) == (1, "")
    assert says in said.err
    assert not Path("trace.json").exists()


def test_a_bundle_is_needed(kernelpack):
    """The bundle is named on the command line."""
    assert kernelpack("trace", "twice").code == 2


def test_json(kernelpack):
    """What was run, what was found, and the files that were written."""
    told = json.loads(kernelpack(*WORDS, "--svg", "x.svg", "--json").out)
    assert (told["variant"], told["grid"]) == ("twice[arch=sm_100a,tile=32]", "2x1x1 CTAs")
    assert (told["findings"], told["files"]) == ([], ["x.svg"])


def test_too_large_for_this_machine(kernelpack, monkeypatch):
    """It is refused before an array is made, and nothing is written."""
    monkeypatch.setattr("kernelpack.verify.room.available_bytes", lambda: 1)
    said = kernelpack(*WORDS)
    assert (said.code, said.out) == (1, "")
    assert "this machine has 0 free" in said.err
    assert not Path("trace.json").exists()


def test_a_window_after_the_end(kernelpack):
    """It would show nothing, so nothing is written."""
    said = kernelpack(*WORDS, "--svg", "x.svg", "-o", "t.json", "--window", "1000000:2000000")
    assert said.code == 1
    assert "--window: `1000000:2000000` shows nothing: the launch has " in said.err
    assert not Path("x.svg").exists()
    assert not Path("t.json").exists()
