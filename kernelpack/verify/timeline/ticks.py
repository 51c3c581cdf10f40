"""What a tick of a timeline's time is, in words: an emulated step, or a nanosecond."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """A tick.

    Attributes:
        one: its name.
        many: of several.
        note: what time means, for the end of a picture.
        told: the same in short, for a trace.
        microseconds: of a trace, for a tick.

    """

    one: str
    many: str
    note: str
    told: str
    microseconds: float = 1.0


_LINES = "Pale lines: an issue; strong lines: what ended a wait."
STEPS = Ticks(
    one="step",
    many="steps",
    note="Time is emulated steps, warp instructions that the scheduler issued one at a time: it "
    f"shows order and overlap, not nanoseconds. {_LINES}",
    told="1 us is one emulated step, a warp instruction; order and overlap, not nanoseconds",
)
NANOSECONDS = Ticks(
    one="ns",
    many="ns",
    note="Time is predicted nanoseconds, of the first cluster of a replay of the kernel's own "
    f"instructions: no device ran it. {_LINES}",
    told="predicted time of the first cluster, from a replay; no device ran it",
    microseconds=0.001,
)
