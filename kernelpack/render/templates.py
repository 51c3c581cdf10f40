"""Where templates are: in the shared folder, and in the folders of kernels of one's own.

`rms_norm/rms_norm.cu.j2` lies in the kernel's folder called `rms_norm` if there is one, else under
the shared one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SUFFIX = ".j2"
"""Templates in a kernel's folder, which has other files, too."""
HEADERS = (".cuh", ".h", ".hpp")
"""Of headers there."""


@dataclass(frozen=True, slots=True)
class Templates:
    """The folders that templates are read from.

    Attributes:
        shared: the folder of templates, with `include/` in it.
        kernels: folders of kernels, each of a name of its own.

    """

    shared: Path
    kernels: tuple[Path, ...] = ()

    def find(self, name: str) -> Path:
        """The file of a template, which may not be there."""
        first, _, rest = name.partition("/")
        for folder in self.kernels:
            if folder.name == first and rest.endswith(SUFFIX):
                return folder / rest
        return self.shared / name

    def names(self) -> Iterator[str]:
        """Every template that there is, without headers."""
        headers = self.shared / "include"
        for path in sorted(self.shared.rglob("*")):
            if path.is_file() and headers not in path.parents:
                yield str(path.relative_to(self.shared))
        yield from (f"{path.parent.name}/{path.name}" for path in self.own())

    def own(self) -> Iterator[Path]:
        """The templates in the folders of kernels."""
        for folder in self.kernels:
            yield from sorted(folder.glob(f"*{SUFFIX}"))

    def headers(self) -> Iterator[Path]:
        """The headers there, and in folders of theirs."""
        for folder in self.kernels:
            yield from sorted(p for p in folder.rglob("*") if p.suffix in HEADERS)

    def named(self, path: Path) -> str | None:
        """The name of a template's file; None of another file."""
        for folder in self.kernels:
            if path.is_relative_to(folder):
                return f"{folder.name}/{path.relative_to(folder)}"
        return str(path.relative_to(self.shared)) if path.is_relative_to(self.shared) else None
