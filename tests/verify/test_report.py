"""A verification's report: terminal and page."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from kernelpack.spec.artifact import digest
from kernelpack.verify.html import page
from kernelpack.verify.outcome import Broken, State
from kernelpack.verify.report import summary
from kernelpack.verify.source_lines import SourceLines
from tests.verify.small import verified


def test_sum(tmp_path):
    """The last line counts runs and variants."""
    last = list(summary(verified(tmp_path)))[-1]
    assert re.fullmatch(
        r"5 runs in \S+ s \(0 cached\): 5 right; 2 of 2 variants right in all of theirs", last
    )


def test_unselected(tmp_path):
    """Variants that no case selects are counted: they cost a build and prove no road."""
    assert "selected by no case, so only forced: 1 variant" in summary(verified(tmp_path))


def test_not_asked_for(tmp_path):
    """Entries of the bundle that were left out are counted."""
    assert "not verified: 1 of 2 entries" in summary(verified(tmp_path, keep="tile=32"))


def test_complaints(tmp_path):
    """Each kind of wrong is reported once, with one run that shows it."""
    lines = list(summary(verified(tmp_path, "neg.f32 %f1, %f1;")))
    assert lines[0] == "wrong numbers in y: 2 runs of 1 variant"
    assert lines[1] == "  twice[arch=sm_100a,tile=64] n_5 sm=4 eager"
    assert lines[2].startswith("  y: 5 of 5 wrong, first [0] = ")


def test_two_findings_of_a_run(tmp_path):
    """A run that breaks a rule twice at one place is one run."""
    report = verified(tmp_path)
    twice = tuple(Broken(rule="race", place="x.cu:1", text=text) for text in ("first", "second"))
    found = replace(report.outcomes[0], state=State.FOUND, broken=twice)
    lines = list(summary(replace(report, outcomes=(found, *report.outcomes[1:]))))
    assert lines[0] == "race at x.cu:1: 1 run of 1 variant"


def test_a_long_complaint(tmp_path):
    """Of many lines the first are shown, and how many there are more."""
    report = verified(tmp_path)
    long = Broken(rule="race", place="", text="\n".join(map(str, range(20))))
    found = replace(report.outcomes[0], state=State.FOUND, broken=(long,))
    lines = list(summary(replace(report, outcomes=(found, *report.outcomes[1:]))))
    assert lines[13:15] == ["  11", "    … and 8 more lines"]


def test_fault_and_its_finding(tmp_path):
    """A fault that ended a run is reported with its place in the source."""
    lines = list(summary(verified(tmp_path, "trap;")))
    assert lines[0].startswith("Trap")
    assert len([line for line in lines if not line.startswith(" ")]) == 3


def test_page(tmp_path):
    """The page is one file: no address is in it but data, and a picture for each wrong run."""
    text = page([verified(tmp_path, "neg.f32 %f1, %f1;")])
    assert re.findall(r'(?:src|href)="(?!data:)[^"]*"|https?://', text) == []
    assert text.count('src="data:image/png;base64,') == 2


@pytest.mark.parametrize(
    "says",
    [
        '<h1 class="bad">x.kpk: 2 of 2 entries verified, 1 of these wrong</h1>',
        "<title>x.kpk: 2 of 2 entries verified, 1 of these wrong</title>",
        "What was not",
        "1 of 2 variants compute right numbers without a finding",
        "not right, below: 2 runs",
        "how fast a kernel is",
        "every small case under every schedule: this was not a full run",
        "that selection ever takes: twice[arch=sm_100a,tile=64]",
        "y: 5 of 5 wrong, first [0]",
    ],
)
def test_page_says(tmp_path, says):
    """The page says what was proven, what was not and what is wrong."""
    assert says in page([verified(tmp_path, "neg.f32 %f1, %f1;")])


def test_a_page_of_some(tmp_path):
    """The title says how much was looked at, and so does what was not proven."""
    text = page([verified(tmp_path, keep="tile=32")])
    assert "<title>x.kpk: 1 of 2 entries verified, every run right</title>" in text
    assert "<li>1 entry of the bundle that nobody asked for</li>" in text


def test_right_runs_are_folded(tmp_path):
    """Runs that are right are a table of cases below one line, without pictures."""
    text = page([verified(tmp_path)])
    assert "<img" not in text
    assert "<details><summary>2 variants right in every run</summary>" in text
    assert "<td>eager (1)</td>" in text


def test_nothing_right(tmp_path):
    """Where no run is right nothing is printed about clusters or interleavings."""
    text = page([verified(tmp_path, "trap;", keep="tile=64")])
    assert "clusters" not in text
    assert "interleavings:" not in text


def test_lines_of_source(tmp_path):
    """Each place of a complaint has its line, from the very source; a changed file gives none."""
    (tmp_path / "twice").mkdir()
    template = tmp_path / "twice" / "x.cu.j2"
    template.write_text("first\n  y[i] = x[i];\n")
    report = verified(tmp_path)
    text = "warp 1 writes what warp 0 wrote at twice/x.cu.j2:1 (kp/a.cuh:9)"
    broken = (Broken(rule="race", place="twice/x.cu.j2:2", text=text),)
    found = replace(report.outcomes[0], state=State.FOUND, broken=broken)
    digests = {"templates/twice/x.cu.j2": digest(template.read_bytes())}
    lines = SourceLines(digests, (tmp_path / "elsewhere", tmp_path))
    report = replace(report, outcomes=(found, *report.outcomes[1:]), lines=lines)
    said = list(summary(report))
    assert said[3:5] == ["    twice/x.cu.j2:2: y[i] = x[i];", "    twice/x.cu.j2:1: first"]
    assert "twice/x.cu.j2:2: y[i] = x[i];" in page([report])
    template.write_text("changed\n\n")
    assert "    twice/x.cu.j2" not in "\n".join(summary(report))


def test_page_is_well_formed(tmp_path):
    """Everything that is opened is closed."""
    text = page([verified(tmp_path)]).replace("<!doctype html>\n", "")
    ET.fromstring(re.sub(r"<(meta|img)([^>]*)>", r"<\1\2/>", text))
