"""The trace that ui.perfetto.dev opens."""

import json
from dataclasses import replace

import pytest

from kernelpack.verify.timeline.perfetto import trace
from tests.verify.timeline.made import drawn, operation, timeline


@pytest.fixture
def events():
    return trace(drawn(), {})["traceEvents"]


def of(events, phase):
    return [event for event in events if event["ph"] == phase]


def test_json():
    """It is JSON, and says what time means and what was run."""
    read = json.loads(json.dumps(trace(drawn(), {"variant": "x[tile=1]"})))
    assert "not nanoseconds" in read["otherData"]["time"]
    assert read["otherData"]["variant"] == "x[tile=1]"


def test_tracks(events):
    """A process is a CTA, a thread a row."""
    named = [event["args"]["name"] for event in of(events, "M") if "name" in event["args"]]
    assert named == [
        "CTA (0, 0, 0)", "load warp 0", "multiply warp 1", "tensor pipe", "copies on 0x400",
    ]  # fmt: skip


def test_slices(events):
    """A bar is a slice; a step is a microsecond."""
    found = [(event["name"], event["ts"], event["dur"]) for event in of(events, "X")]
    assert ("0x408 phase 0", 10, 30) in found
    assert ("cp.async.bulk.tensor.2d", 5, 25) in found


def inside(event, slices):
    return any(
        (s["pid"], s["tid"]) == (event["pid"], event["tid"])
        and s["ts"] <= event["ts"] < s["ts"] + s["dur"]
        for s in slices
    )


EAGER = replace(
    timeline(),
    operations=(timeline().operations[0], operation(2, issued=39, done=39)),
)


@pytest.mark.parametrize("made", [timeline(), EAGER], ids=["lazy", "eager"])
def test_flows_join_slices(made):
    """Each end of a flow lies in a slice, and none leads back in time."""
    events = trace(drawn(made), {})["traceEvents"]
    slices, starts, ends = of(events, "X"), of(events, "s"), of(events, "f")
    assert [event["id"] for event in starts] == [event["id"] for event in ends] == [0, 1, 2, 3]
    assert all(start["ts"] <= end["ts"] for start, end in zip(starts, ends, strict=True))
    assert [event for event in (*starts, *ends) if not inside(event, slices)] == []
