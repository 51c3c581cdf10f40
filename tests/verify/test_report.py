"""What a verification tells: terminal and page."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from kernelpack.verify.html import page
from kernelpack.verify.outcome import Broken, State
from kernelpack.verify.report import summary
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
    """Each kind of wrong is told once, with one run that shows it."""
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
    """A fault that ended a run is told with its place in the source."""
    lines = list(summary(verified(tmp_path, "trap;")))
    assert lines[0].startswith("Trap")
    assert len([line for line in lines if not line.startswith(" ")]) == 3


def test_page(tmp_path):
    """The page is one file: no address is in it but data, and a picture for each run."""
    text = page([verified(tmp_path, "neg.f32 %f1, %f1;")])
    assert re.findall(r'(?:src|href)="(?!data:)[^"]*"|https?://', text) == []
    assert text.count('src="data:image/png;base64,') == 5


@pytest.mark.parametrize(
    "says",
    [
        "<h1>x.kpk: something is wrong</h1>",
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


def test_page_is_well_formed(tmp_path):
    """Everything that is opened is closed."""
    text = page([verified(tmp_path)]).replace("<!doctype html>\n", "")
    ET.fromstring(re.sub(r"<(meta|img)([^>]*)>", r"<\1\2/>", text))
