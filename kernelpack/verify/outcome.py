"""The outcome of a run: right, wrong or unknown."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from kernelpack.verify.compare import Comparison
from kernelpack.verify.job import Job


class State(StrEnum):
    """How a run ended, the best first."""

    RIGHT = "right"
    FOUND = "found"  # the numbers are right, and a rule was broken
    WRONG = "wrong"  # a number is beyond its bound
    FAULT = "fault"  # the kernel could not go on, or a GPU would refuse the launch
    UNSUPPORTED = "unsupported"  # the emulator does not model what the kernel does


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A finding as it is kept: which rule, where in the source, and the whole sentence."""

    rule: str
    place: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Why a run ended early: the error's class, where in the source, and its words."""

    kind: str
    text: str
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A run and its outcome.

    Attributes:
        job: what was run.
        state: how it ended.
        cluster: CTAs of a cluster; how the launch split its work.
        ctas: how many CTAs there were in all.
        comparisons: every output beside the oracle's; none if the run ended early.
        broken: the findings, each once.
        ended: why it ended early.
        steps: warp instructions.
        seconds: what it took of a processor when it ran; the cache remembers it.
        cached: whether it was taken from the cache.

    """

    job: Job
    state: State
    cluster: tuple[int, int, int] = (1, 1, 1)
    ctas: int = 0
    comparisons: tuple[Comparison, ...] = field(default=(), repr=False)
    broken: tuple[Broken, ...] = field(default=(), repr=False)
    ended: Ended | None = None
    steps: int = 0
    seconds: float = field(default=0.0, compare=False)
    cached: bool = field(default=False, compare=False)

    @property
    def variant_id(self) -> str:
        """The variant that ran."""
        return self.job.variant_id

    @property
    def is_right(self) -> bool:
        """Whether it proves its variant right for its case."""
        return self.state is State.RIGHT

    @property
    def ratio(self) -> float:
        """The worst error in bounds over all outputs."""
        return max((c.worst.ratio for c in self.comparisons), default=0.0)

    @property
    def words(self) -> str:
        """The mistakes, a line a kind; empty where nothing is wrong."""
        return "\n".join(self.complaints())

    def complaints(self) -> Iterable[str]:
        """The mistakes, the gravest first."""
        if self.ended:
            yield f"{self.ended.kind}: {self.ended.text}"
        yield from (str(c) for c in self.comparisons if not c.is_right)
        yield from (b.text for b in self.broken)
