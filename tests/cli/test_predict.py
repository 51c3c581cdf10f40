"""`kernelpack predict`, on the small kernel of the verification's tests."""

import json
from pathlib import Path

import pytest

from kernelpack.cli import predict as module
from kernelpack.kernels.registry import KERNELS
from kernelpack.predict import device
from kernelpack.predict.device import devices
from tests.verify import small

WORDS = ("predict", "x.kpk", "twice", "n=500")


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    """The kernel is known, and its bundle lies where the command runs."""
    monkeypatch.setitem(KERNELS, "twice", small.DEFINITION)
    monkeypatch.chdir(tmp_path)
    small.bundle(tmp_path / "x.kpk")


def test_a_prediction(kernelpack):
    """The time with its band, what binds, where the time goes, and what it cannot tell."""
    said = kernelpack(*WORDS)
    assert (said.code, said.err.partition("\n")[0]) == (
        0, "recording twice[arch=sm_100a,tile=32]",
    )  # fmt: skip
    lines = said.out.splitlines()
    assert lines[0].split() == ["device", "NVIDIA", "B200"]
    assert any(line.startswith("grid") and "16x1x1 CTAs" in line for line in lines)
    assert any(line.startswith("predicted") and " us (" in line for line in lines)
    assert any(line.startswith("binds") for line in lines)
    assert "cannot tell:" in lines
    assert "only published times of others were compared" in lines[-1]


def test_json(kernelpack):
    """The same in fields; the band holds the time, and the path's parts are parts of 1."""
    told = json.loads(kernelpack(*WORDS, "--json").out)
    assert (told["device"], told["variant"]) == ("b200", "twice[arch=sm_100a,tile=32]")
    assert told["low"] <= told["microseconds"] <= told["high"]
    assert (told["grid"], told["cluster"]) == ([16, 1, 1], [1, 1, 1])
    assert told["waves"] < 1
    assert 0.9 < sum(share["part"] for share in told["path"]) <= 1.01
    assert {"issue", "HBM", "TMA"} <= told["works"].keys()
    assert told["not_told"]


def test_a_warm_l2(kernelpack):
    """What a launch reads is there sooner; a line and a field say so."""
    cold, warm = (kernelpack(*WORDS, "--json", *more).out for more in ((), ("--warm",)))
    cold, warm = json.loads(cold), json.loads(warm)
    assert (cold["is_warm"], warm["is_warm"]) == (False, True)
    assert warm["microseconds"] < cold["microseconds"]
    assert ["L2", "warm"] in [
        line.split() for line in kernelpack(*WORDS, "--warm").out.splitlines()
    ]


def test_all_variants_the_fastest_first(kernelpack, tmp_path):
    """Both serve; one has a hundred more instructions one after the other."""
    long = "\n".join([small.DOUBLE] * 400)
    texts = {32: small.ptx(long, entry="twice_32"), 64: small.ptx(entry="twice_64")}
    small.bundle(tmp_path / "x.kpk", texts)
    told = json.loads(kernelpack(*WORDS, "--all", "--json").out)["predictions"]
    assert [each["variant"] for each in told] == [
        "twice[arch=sm_100a,tile=64]", "twice[arch=sm_100a,tile=32]",
    ]  # fmt: skip
    assert told[0]["microseconds"] < told[1]["microseconds"]


def test_all_variants_as_a_table(kernelpack):
    """A line each, with the time, its band and what binds."""
    lines = kernelpack(*WORDS, "--all").out.splitlines()
    assert lines[2].split() == ["us", "band", "L2", "binds", "variant"]
    assert sum("twice[arch=sm_100a" in line for line in lines) == 2


def test_a_picture_and_a_trace(kernelpack):
    """Both are over nanoseconds; the trace's times are in microseconds."""
    said = kernelpack(*WORDS, "--svg", "x.svg", "-o", "t.json")
    assert said.err.endswith("wrote x.svg\nwrote t.json\n")
    assert "Time is predicted nanoseconds" in Path("x.svg").read_text()
    trace = json.loads(Path("t.json").read_text())
    assert trace["displayTimeUnit"] == "ns"
    assert trace["otherData"]["time"].startswith("predicted time")
    assert max(event.get("ts", 0) for event in trace["traceEvents"]) < 100


def test_a_kernel_without_an_oracle(kernelpack, monkeypatch):
    """What steers it is taken as zero, and that is said."""
    zeros = "what steers a kernel without an oracle: its integers are zero"
    assert zeros not in kernelpack(*WORDS).out
    monkeypatch.delitem(KERNELS, "twice")
    assert zeros in kernelpack(*WORDS).out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--device", "b2000"], "no device `b2000`"),
        (["--device", "h200"], "NVIDIA H200 runs sm_90a, and the variants are for sm_100a"),
        (["-k", "tile=7"], "no id holds `tile=7`"),
        (["n"], "`n` is not a size"),
        (["--window", "9:3"], "--window: `9:3` is not a window"),
        (["--svg", "x.svg", "--window", "9:3"], "--window: `9:3` is not a window"),
        (["--svg", "no/x.svg"], "there is no such folder"),
        (["-o", "x.kpk"], "x.kpk: is not written over"),
    ],
)
def test_wrong_words(kernelpack, words, says):
    """What cannot be predicted is refused before anything is recorded."""
    said = kernelpack(*WORDS, *words)
    assert (said.code, said.out) == (1, "")
    assert says in said.err


def test_a_size_that_is_missing(kernelpack, monkeypatch):
    """It is named, with what it means."""
    monkeypatch.delitem(KERNELS, "twice")
    said = kernelpack("predict", "x.kpk", "twice")
    assert said.code == 1
    assert "`n` is not given: elements" in said.err


def test_a_kernel_that_is_not_there(kernelpack):
    """The bundle is named, and the kernel that was probably meant."""
    said = kernelpack("predict", "x.kpk", "twic", "n=5")
    assert said.code == 1
    assert "x.kpk: the bundle holds no `twic`\nhint: did you mean `twice`?" in said.err


def test_a_target_of_no_device(kernelpack, monkeypatch):
    """The devices that there are, with their targets."""
    known = {name: one for name, one in devices().items() if one.target != "sm_100a"}
    monkeypatch.setattr(device, "devices", lambda: known)
    monkeypatch.setattr("kernelpack.predict.choose.devices", lambda: known)
    said = kernelpack(*WORDS)
    assert said.code == 1
    assert "no device is known for sm_100a\nhint: devices: h200 (sm_90a)" in said.err


def test_too_large_for_this_machine(kernelpack, monkeypatch):
    """It is refused before an array is made: 500 floats, twice, have 4,000 bytes of state."""
    monkeypatch.setattr("kernelpack.verify.room.available_bytes", lambda: 3999)
    said = kernelpack(*WORDS)
    assert (said.code, said.out) == (1, "")
    assert "needs 0 MiB; this machine has 0 free" in said.err


def test_a_window_after_the_end(kernelpack):
    """It would show nothing; the picture that was there stays."""
    Path("x.svg").write_text("before")
    said = kernelpack(*WORDS, "--svg", "x.svg", "--window", "1000000:2000000")
    assert said.code == 1
    assert "--window: `1000000:2000000` shows nothing: the launch has " in said.err
    assert Path("x.svg").read_text() == "before"


@pytest.mark.parametrize("words", [["--window", "3:9"], ["--ctas", "2"]])
def test_a_part_of_no_picture(kernelpack, words):
    """What would change nothing is refused."""
    said = kernelpack(*WORDS, *words)
    assert (said.code, said.out) == (2, "")
    assert "--ctas and --window are about a picture, which --svg draws" in said.err


STOPS = small.ptx("trap;", entry="twice_32")


def test_a_variant_that_fails_among_all(kernelpack, tmp_path):
    """It is named, the others are predicted, and the exit code says that one is missing."""
    small.bundle(tmp_path / "x.kpk", {32: STOPS, 64: small.ptx(entry="twice_64")})
    said = kernelpack(*WORDS, "--all", "--json")
    told = json.loads(said.out)
    assert said.code == 1
    assert [each["variant"] for each in told["predictions"]] == ["twice[arch=sm_100a,tile=64]"]
    assert "error: twice[arch=sm_100a,tile=32]: cta (8, 0, 0) warp 0" in said.err
    assert told["failed"]


def test_interrupted_among_all(kernelpack, monkeypatch):
    """What was finished is shown."""
    asked = iter([None, KeyboardInterrupt()])

    def stop(launch, toolchain, _sample=module.sample):
        error = next(asked)
        if error:
            raise error
        return _sample(launch, toolchain)

    monkeypatch.setattr(module, "sample", stop)
    said = kernelpack(*WORDS, "--all")
    assert said.code == 130
    assert sum("twice[arch=sm_100a" in line for line in said.out.splitlines()) == 1


def test_several_variants_have_no_picture(kernelpack):
    """A picture is of one."""
    assert kernelpack(*WORDS, "--all", "--svg", "x.svg").code == 2
