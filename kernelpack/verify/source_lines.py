"""The lines of source beside places, where the very files that kernels were made of are at hand."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelpack.spec.artifact import digest

_PLACE = re.compile(r"(?<![\w./-])([\w./-]+\.(?:cuh|cu\.j2|j2|cu)):(\d+)")
_FOLDERS = ("templates/", "templates/include/")
"""Where a file that a place names lies among a bundle's sources."""


@dataclass(frozen=True, slots=True)
class SourceLines:
    """Lines of a bundle's templates and headers.

    A file that has changed since the bundle was made gives no line, for it would be another.

    Attributes:
        digests: of each source by its name, `templates/…`, as the bundle has it (SHA-256).
        folders: each may be the `templates/` of some sources.

    """

    digests: Mapping[str, str]
    folders: tuple[Path, ...]

    def beside(self, *texts: str) -> Iterator[str]:
        """Every place that the texts name, once, with its line: `kernel.cu.j2:12: x = y;`."""
        places = dict.fromkeys(match.groups() for text in texts for match in _PLACE.finditer(text))
        for file, number in places:
            if line := self.line(file, int(number)):
                yield f"{file}:{number}: {line}"

    def line(self, file: str, number: int) -> str:
        """A line of a file, without the blanks around it; empty where it is not known."""
        for folder in _FOLDERS:
            lines = self._read(folder + file)
            if 0 < number <= len(lines):
                return lines[number - 1].strip()
        return ""

    def _read(self, name: str) -> list[str]:
        """The lines of a source; none where no file at hand is that one."""
        wanted = self.digests.get(name)
        for folder in self.folders if wanted else ():
            try:
                text = (folder / name.removeprefix("templates/")).read_text(encoding="utf-8")
            except (OSError, UnicodeError):
                continue
            if digest(text) == wanted:
                return text.splitlines()
        return []


NO_SOURCES = SourceLines({}, ())
"""Where nothing is known of what kernels were made of."""
