"""Times of calls on a GPU as every benchmark here takes them.

A time is that of one call inside a CUDA graph of many, which rotate through sets of inputs that
together are larger than the L2 cache: the median over replays, the rivals taking turns.
"""

import statistics
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import torch

CALLS = 60  # at least, in a graph
ROUNDS = 5  # of the rivals taking turns
REPLAYS = 5  # of each graph in a round
ROTATED_BYTES = 200_000_000  # more than three times the L2 cache of an H200
MOST_APART = 0.1  # of outputs, by e4m3 codes and weights on one side

Calls = list[Callable[[], object]]
"""One a set of inputs."""


def sets_of(call_bytes: int) -> int:
    """As many sets of inputs as the cache cannot hold, where a call moves so many bytes."""
    return max(2, min(64, -(-ROTATED_BYTES // call_bytes)))


class Timed:
    """Calls recorded in a graph, `least` of them; `replay` gives the microseconds of one."""

    def __init__(self, calls: Calls, least: int = CALLS) -> None:
        stream = torch.cuda.Stream()
        torch.cuda.synchronize()  # inputs, and plans made of them, are there
        with torch.cuda.stream(stream):
            for call in calls:
                call()
        torch.cuda.synchronize()
        self.count = -(-least // len(calls)) * len(calls)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream):
            for i in range(self.count):
                calls[i % len(calls)]()
        self.graph.replay()

    def replay(self) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        self.graph.replay()
        end.record()
        end.synchronize()
        return 1000 * start.elapsed_time(end) / self.count


def take_turns(timed: dict[str, Timed]) -> dict[str, float]:
    """The median microseconds of each."""
    times: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(ROUNDS):
        for name, one in timed.items():
            times[name] += [one.replay() for _ in range(REPLAYS)]
    return {name: statistics.median(values) for name, values in times.items()}


def check_agree(name: str, difference: float) -> float:
    """How far the outputs are apart, over their size: a time of other outputs says nothing."""
    if not difference < MOST_APART:  # nor is it where one is not a number
        raise SystemExit(f"{name}: outputs differ by {difference:.1e}: times say nothing")
    return difference


def copy_rate() -> float:
    """Bytes a microsecond of a device copy, read and written counted: the best of some sizes."""
    return max(_copy_rate(size) for size in (1 << 28, 1 << 30, 1 << 32))


def _copy_rate(size: int) -> float:
    source = torch.empty(size // 4, device="cuda", dtype=torch.float32).normal_()
    target = torch.empty_like(source)
    timed = Timed([lambda: target.copy_(source)])
    return 2 * size / statistics.median(timed.replay() for _ in range(5))


def about_this_run() -> dict[str, str]:
    """What a result must say about where it comes from."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return {
        "command": " ".join(["python", *sys.argv]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip(),
        "torch": torch.__version__,
    }
