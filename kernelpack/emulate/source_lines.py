"""The lines of source beside places, from the files that a program was compiled of."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PLACE = re.compile(r"(/[^\s:()]+\.\w+):(\d+)")


@dataclass(frozen=True, slots=True)
class SourceLines:
    """Lines of files that a program's PTX names.

    A file that was changed after the program was made gives no line, for it may be another.

    Attributes:
        made: when the program was, in seconds as files have them; nothing is shown at 0.

    """

    made: float = 0.0

    @classmethod
    def of(cls, program: Path) -> "SourceLines":
        """Those of a program; of one that is not there, none."""
        try:
            return cls(program.stat().st_mtime)
        except OSError:
            return cls()

    def beside(self, text: str) -> Iterator[str]:
        """Every place that a text names, once, with its line: `/src/kernel.cu:12: x = y;`."""
        for file, number in dict.fromkeys(match.groups() for match in _PLACE.finditer(text)):
            if line := self._line(Path(file), int(number)):
                yield f"{file}:{number}: {line}"

    def _line(self, file: Path, number: int) -> str:
        """A line without the blanks around it; empty where it is not known."""
        try:
            if file.stat().st_mtime > self.made:
                return ""
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""
