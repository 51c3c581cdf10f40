"""The record beside a bundle: what is proven of it, and how far."""

import json
from dataclasses import replace
from errno import ENOSPC

import pytest

from kernelpack.emulator.faults import Level
from kernelpack.errors import KernelpackError
from kernelpack.verify.plan import PLANS, Scope
from kernelpack.verify.verified import record, record_path, write_record
from tests.docs.pages import ROOT
from tests.verify.small import verified

ONE, OTHER = "twice[arch=sm_100a,tile=32]", "twice[arch=sm_100a,tile=64]"


def written(report):
    return json.loads(write_record(report).read_text())


def test_record(tmp_path):
    """Programs get each entry: its PTX, its runs, and whether all were right."""
    value = record(verified(tmp_path, "neg.f32 %f1, %f1;"))
    entries = value["entries"]
    assert [entry["right"] for entry in entries.values()] == [True, False]
    (run,) = (run for run in entries[OTHER]["runs"] if run["case"] == "n_5")
    assert (run["how"], run["state"], run["level"]) == ("forced", "wrong", "warn")
    assert run["complaints"]
    assert value["not_proven"]


def test_record_is_the_same_each_time(tmp_path):
    """No time and no path takes part."""
    first = json.dumps(record(verified(tmp_path)))
    assert first == json.dumps(record(verified(tmp_path)))


def test_written(tmp_path):
    """The record lies beside the bundle."""
    path = write_record(verified(tmp_path))
    assert path == tmp_path / "x.verified.json" == record_path(tmp_path / "x.kpk")
    assert json.loads(path.read_text())["right"] is True


def test_written_in_parts(tmp_path):
    """Entries verified by an earlier run on the same bundle stay in the record."""
    write_record(verified(tmp_path, keep="tile=32"))
    assert len(written(verified(tmp_path, keep="tile=64"))["entries"]) == 2


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, "part"),
        ({"keep": "tile=32"}, "none"),
        ({"scope": Scope()}, "default"),
        ({"scope": Scope(), "keep": "tile=32"}, "none"),
        ({"scope": Scope(full=True)}, "full"),
        ({"scope": Scope(full=True, schedule="eager")}, "part"),
    ],
    ids=str,
)
def test_plan(tmp_path, asked, expected):
    """The record says how far its runs go, over every entry of the bundle."""
    assert expected == record(verified(tmp_path, **asked))["plan"]


def test_unverified(tmp_path):
    """Entries of the bundle without runs are named: `right` says nothing of them."""
    value = record(verified(tmp_path, keep="tile=32"))
    assert (value["right"], value["unverified"]) == (True, [OTHER])


@pytest.mark.parametrize(
    "narrow", [{"keep": "tile=32", "scope": Scope()}, {"scope": Scope(schedule="lazy")}], ids=str
)
def test_a_narrow_run_takes_nothing_away(tmp_path, narrow):
    """What a whole plan has proven stays proven."""
    whole = written(verified(tmp_path, scope=Scope()))
    assert whole == written(verified(tmp_path, **narrow))


def test_a_wrong_run_stays_wrong(tmp_path):
    """A later run of another variant does not make a bundle right."""
    written(verified(tmp_path, "neg.f32 %f1, %f1;"))
    assert written(verified(tmp_path, "neg.f32 %f1, %f1;", keep="tile=32"))["right"] is False


def test_levels_are_runs_of_their_own(tmp_path):
    """A strict run is beside the other of the same case."""
    write_record(verified(tmp_path, keep="tile=32"))
    strict = Scope(schedule="eager", level=Level.STRICT)
    runs = written(verified(tmp_path, keep="tile=32", scope=strict))["entries"][ONE]["runs"]
    assert {run["level"] for run in runs} == {"warn", "strict"}


@pytest.mark.parametrize("what", ["root", "emulator", "oracle"])
def test_of_something_else(tmp_path, what):
    """Runs of other bytes, by another emulator or oracle, say nothing and are dropped."""
    write_record(replace(verified(tmp_path, keep="tile=32"), **{what: "another"}))
    assert list(written(verified(tmp_path, keep="tile=64"))["entries"]) == [OTHER]


@pytest.mark.parametrize("known", ["not JSON", "{}", "[]", '{"format": 0}'])
def test_written_over(tmp_path, known):
    """A record of something else is replaced."""
    record_path(tmp_path / "x.kpk").write_text(known)
    assert len(written(verified(tmp_path, keep="tile=64"))["entries"]) == 1


def test_the_page_names_every_key(tmp_path):
    """docs/reference/verified.md describes each key of the record, and each plan."""
    page = (ROOT / "docs/reference/verified.md").read_text()
    value = record(verified(tmp_path, "neg.f32 %f1, %f1;"))
    entry = value["entries"][OTHER]
    words = {*value, *entry, *entry["runs"][0], *PLANS}
    assert {word for word in words if f"`{word}`" not in page} == set()


def test_full_disk(tmp_path, monkeypatch):
    """A record that cannot be written leaves the earlier one as it was."""
    path = write_record(verified(tmp_path, keep="tile=32"))
    before, report = path.read_bytes(), verified(tmp_path, keep="tile=64")

    def full(_descriptor):
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr("kernelpack.files.os.fsync", full)
    with pytest.raises(KernelpackError, match=r"x\.verified\.json: cannot be written: No space"):
        write_record(report)
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", [5, {"plan": "part", "runs": [5]}, {"plan": "all", "runs": []}])
def test_damaged_entry(tmp_path, damage):
    """An earlier record whose entries are not of our form counts as none."""
    report = verified(tmp_path, keep="tile=32")
    path = write_record(report)
    path.write_text(json.dumps({**json.loads(path.read_text()), "entries": {"zz": damage}}))
    assert list(written(report)["entries"]) == [ONE]
