"""Launches that were asked for and need not have happened yet.

A launch is asynchronous. One that the next may overlap, as a programmatic dependent in the same
stream, waits for it; they run together. Whatever else the program asks of device memory comes
behind them, and so does its patience: a program may poll pinned memory and ask for nothing.
"""

import time

from kernelpack.emulate.launcher import Asked, Launcher
from kernelpack.emulate.protocol import Status
from kernelpack.emulate.report import Log

MOST = 16
"""Launches that run together."""
PATIENCE_SECONDS = 1.0


class Queue:
    """The launches of one program that wait."""

    def __init__(self, launcher: Launcher, log: Log) -> None:
        self.launcher, self.log = launcher, log
        self.waiting: list[Asked] = []
        self.since = 0.0
        """When the last one was asked for."""
        self.failed = Status.SUCCESS
        """The error of the first launch that failed."""

    def add(self, asked: Asked) -> None:
        """One more, after which come those that may overlap it."""
        before = self.waiting[-1] if self.waiting else None
        if before and not (asked.may_overlap(before) and len(self.waiting) < MOST):
            self.run()
        self.waiting.append(asked)
        self.since = time.monotonic()

    def run(self) -> None:
        """Let all happen that wait."""
        together, self.waiting = self.waiting, []
        if not together:
            return
        launches, status = self.launcher.launch(together)
        self.log.launches.extend(launches)
        self.failed = self.failed or status

    def told(self) -> Status:
        """How a launch failed, reported once."""
        failed, self.failed = self.failed, Status.SUCCESS
        return failed

    def look(self) -> None:
        """The program asks for nothing: let what waits happen after a while."""
        if self.waiting and time.monotonic() - self.since > PATIENCE_SECONDS:
            self.run()
