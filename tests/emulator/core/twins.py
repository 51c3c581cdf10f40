"""The programs of every table of twins, bad and good: what the core's checks are held to."""

from dataclasses import dataclass

from tests.emulator.checks import (
    test_barrier_twins,
    test_byte_twins,
    test_cluster_twins,
    test_lane_twins,
    test_order_twins,
    test_pipe_twins,
    test_twins,
)
from tests.emulator.checks.twins import Twins
from tests.emulator.kernel import Prepared, prepared

_TABLES = (
    test_barrier_twins.TWINS, test_byte_twins.TWINS, test_cluster_twins.TWINS,
    test_lane_twins.TWINS, test_order_twins.TWINS, test_pipe_twins.TWINS, test_twins.TWINS,
)  # fmt: skip


@dataclass(frozen=True)
class Program:
    """A body with its gap filled, and how it is launched; at level `warn`, whatever its table's."""

    body: str
    rule: str
    threads: int
    grid: int
    cluster: int
    schedule: str
    target: str

    def prepared(self) -> Prepared:
        """A launch of it."""
        return prepared(
            self.body, threads=self.threads, grid=self.grid, cluster=self.cluster,
            target=self.target,
        )  # fmt: skip


def _programs(twins: Twins) -> list[Program]:
    return [
        Program(
            twins.body.replace("§", text), twins.rule, twins.threads, twins.grid, twins.cluster,
            twins.schedule, twins.target,
        )
        for text in (twins.bad, twins.good)
    ]  # fmt: skip


PROGRAMS = list(dict.fromkeys(p for table in _TABLES for twins in table for p in _programs(twins)))
