"""A disk that fails on request, over a real folder, with a clock that only sleeping moves."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelpack.cache.disk import Disk


class FakeDisk(Disk):
    """Each call first takes the next answer of its script: an errno to raise, or 0 to go through.

    The last answer of a script stays. `calls` lists the names of the calls in order.
    """

    def __init__(self, scripts: Mapping[str, Sequence[int]]) -> None:
        self.calls: list[str] = []
        self._scripts = {name: list(script) for name, script in scripts.items()}
        self._time = 0.0

    def _answer(self, name: str, path: Path) -> None:
        self.calls.append(name)
        script = self._scripts.get(name, [0])
        code = script.pop(0) if len(script) > 1 else script[0]
        if code:
            raise OSError(code, os.strerror(code), str(path))

    def read(self, path: Path) -> bytes:
        self._answer("read", path)
        return super().read(path)

    def write(self, path: Path, data: bytes) -> None:
        super().write(path, data[: len(data) // 2])
        self._answer("write", path)
        path.write_bytes(data)

    def link(self, source: Path, target: Path) -> None:
        self._answer("link", target)
        super().link(source, target)

    def rename(self, source: Path, target: Path) -> None:
        self._answer("rename", target)
        super().rename(source, target)

    def now(self) -> float:
        return self._time

    def sleep(self, seconds: float) -> None:
        self._time += seconds
