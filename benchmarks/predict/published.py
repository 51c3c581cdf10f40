"""Published times on a B200 of public kernels, and the commands of programs/ that launch them.

    for point in points(Path("build/predict")):
        show(point.command, libraries, each, device=find("b200"), kernels=point.kernels,
             memory_bytes=point.memory_bytes)

`points.toml` has them, and says where each is from and how it was measured.
"""

import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_MEMORY_BYTES = 8 << 30
"""More than any of them takes; what is not touched is not held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A time, and what took it.

    Attributes:
        family: whose kernel it is; what the source and the way of measuring are of.
        problem: what was computed, for people. Points of one family and problem are variants.
        microseconds: of a launch.
        more: what else is in the time, or nothing.
        source: an address.
        how: the way of measuring.
        command: the program and its sizes.
        kernels: a pattern of the kernels' names.
        binds: what binds, where the source or plain arithmetic says so; else nothing.
        is_warm: whether the way of measuring leaves in L2 what the next launch reads.
        memory_bytes: of the device.

    """

    family: str
    problem: str
    microseconds: float
    more: str
    source: str
    how: str
    command: tuple[str, ...]
    kernels: str
    binds: str = ""
    is_warm: bool = False
    memory_bytes: int = _MEMORY_BYTES

    @property
    def name(self) -> str:
        """What it is called among those of its family."""
        return f"{self.problem}|{self.words}"

    @property
    def key(self) -> str:
        """What it is called among all."""
        return f"{self.family}|{self.name}"

    @property
    def words(self) -> str:
        """The command, wherever its program is, and whatever runs it."""
        told = self.command[2:] if self.command[0] == sys.executable else self.command
        return " ".join(Path(word).name for word in told)


def points(programs: Path, path: Path = _HERE / "points.toml") -> Iterator[Point]:
    """All points; `programs` is the folder of what programs/README.md builds."""
    for family, told in tomllib.loads(path.read_text()).items():
        for point in told["points"]:
            yield Point(
                family=family,
                problem=point["problem"],
                microseconds=point["us"],
                more=point.get("more", ""),
                source=told["source"],
                how=told["how"],
                command=_command({**told, **point}, programs),
                kernels=told["kernels"],
                binds=point.get("binds", ""),
                is_warm=told.get("is_warm", False),
            )


def _command(point: Mapping[str, Any], programs: Path) -> tuple[str, ...]:
    """A program that was built, or one in Python, what it launches and its sizes."""
    program, sizes = point["program"], point["arguments"].split()
    if not program.endswith(".py"):
        return (str(programs / program), *sizes)
    made = point["folder"] if "folder" in point else f"{point['ptx']}.ptx"
    return (sys.executable, str(_HERE / "programs" / program), str(programs / made), *sizes)
