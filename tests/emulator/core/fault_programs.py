"""The programs of all seeded faults, compiled to one file, as launches for both engines.

python -m tests.emulator.core.fault_programs FILE
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import zstandard

from kernelpack.errors import CompileError, KernelpackError
from tests.emulator.core.default_runs import compared
from tests.emulator.core.said import Said
from tests.mutation.fault import Fault, read_faults
from tests.mutation.subjects import SUBJECTS
from tests.mutation.trial import STEP_LIMIT, make

_WEIGHT = 2e6
"""Of any of them, beside a default run's: some poll until they are given up."""


@dataclass(frozen=True)
class Seeded:
    """A seeded fault under its schedule."""

    file: Path
    fault: Fault
    weight: float = _WEIGHT

    @property
    def name(self) -> str:
        return f"fault {self.fault.id} {self.fault.schedule}"

    @property
    def kind(self) -> str:
        return f"fault {self.fault.subject}"

    def compare(self, kept: Mapping[str, Said]) -> dict:
        """What to write of it."""
        text = _texts(self.file)[self.fault.id]
        if not text:
            return {"difference": "", "ended": "the build refuses it"}
        subject = SUBJECTS[self.fault.subject]
        given = text, subject.variant(self.fault), subject.sizes, subject.inputs, kept
        try:
            return compared(*given, schedule=self.fault.schedule, step_limit=STEP_LIMIT)
        except KernelpackError as refused:
            return {"difference": "", "ended": f"refused: {type(refused).__name__}"}


@lru_cache(maxsize=1)
def _texts(file: Path) -> dict[str, str]:
    return json.loads(zstandard.decompress(file.read_bytes()))


def tasks(file: Path) -> list[Seeded]:
    """Every seeded fault."""
    return [Seeded(file, fault) for fault in read_faults()]


def _compiled(fault: Fault) -> str:
    """The PTX of a fault; empty where the build refuses it."""
    from tests.kept import compiled

    try:
        return make(SUBJECTS[fault.subject], fault, compiled).ptx.text
    except CompileError:
        return ""


def write(file: Path) -> None:
    """Compile them all, or take them from what tests have kept."""
    texts = {fault.id: _compiled(fault) for fault in read_faults()}
    packed = zstandard.ZstdCompressor(level=19, write_checksum=True).compress(
        json.dumps(texts).encode()
    )
    file.write_bytes(packed)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
