"""The input and output of a child process. Values only; they cross a pipe.

A batch is a case with every variant that is to run on it, so that its inputs and its oracle, which
take longer than the kernels, are made once.
"""

from dataclasses import dataclass
from pathlib import Path

from kernelpack.kernels.definition import Case
from kernelpack.verify.job import Job
from kernelpack.verify.outcome import Outcome

SCHEDULE = "hardware"
"""The interleaving of a run on a GPU, among the names of the emulator's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A run, and the key that its outcome is kept under."""

    job: Job
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Runs of one case.

    Attributes:
        bundle: the file.
        root: its root digest; another one is refused.
        device: the GPU's ordinal.
        kernel: the stem.
        case: the problem.
        tasks: the runs.
        repeats: how often each runs.
        cache: where outcomes are kept.
        kernels: folders of kernels of one's own.
        host_bytes: about what inputs, oracle and comparison need of the host's memory.

    """

    bundle: Path
    root: str
    device: int
    kernel: str
    case: Case
    tasks: tuple[Task, ...]
    repeats: int
    cache: Path
    kernels: tuple[Path, ...] = ()
    host_bytes: int


@dataclass(frozen=True, slots=True)
class OnGpu:
    """The GPU works on task `index` from now on."""

    index: int


@dataclass(frozen=True, slots=True)
class OffGpu:
    """The GPU is done with the task."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of task `index`."""

    index: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Short:
    """Task `index` found too little memory on the GPU."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class Free:
    """The batch is done; `is_sound` is whether this process can run another."""

    is_sound: bool


@dataclass(frozen=True, slots=True)
class Bug:
    """A mistake of kernelpack's, or of an oracle's: its traceback."""

    text: str


Message = OnGpu | OffGpu | Judged | Short | Free | Bug
