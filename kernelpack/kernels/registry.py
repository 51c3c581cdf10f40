"""The kernels whose meaning is known, by stem: of folders that are named, and of packages.

A package announces a kernel by an entry point of the group `kernelpack.kernels`: its stem, and
`module:DEFINITION` or a module that is an oracle. kernelpack's own are found so too. What is named
comes before what is installed. A kernel's definition is imported when asked for, and no other.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from functools import cached_property
from pathlib import Path

from kernelpack.errors import OracleError, ProblemError
from kernelpack.installed import PROJECT, announced, owner
from kernelpack.kernels.definition import Definition
from kernelpack.kernels.folder import Folder, folders
from kernelpack.kernels.place import Announced, InFolder, Place
from kernelpack.spec.nearest import nearest

GROUP = "kernelpack.kernels"
"""The entry point group."""


class Kernels(MutableMapping[str, Definition]):
    """Stem → definition; a program may put one of its own beside those that are found.

    Args:
        named: folders of kernels.

    """

    def __init__(self, named: Sequence[Folder] = ()) -> None:
        self._named = {folder.stem: InFolder(folder) for folder in named}
        self._loaded: dict[str, Definition] = {}

    @cached_property
    def _announced(self) -> dict[str, list[Announced]]:
        """Packages' announcements; several where two announce one stem."""
        found: dict[str, list[Announced]] = {}
        for point in announced(GROUP):
            found.setdefault(point.name, []).append(Announced(point))
        return found

    def place(self, stem: str) -> Place:
        """Where a kernel's meaning is.

        Raises:
            OracleError: two packages announce it.

        """
        if stem in self._named:
            return self._named[stem]
        first, *others = self._announced[stem]
        if others:
            names = " and ".join(owner(each.point) for each in (first, *others))
            what = f"{names} announce one kernel `{stem}`"
            raise OracleError(what, where=GROUP, hint="uninstall one, or name a folder")
        return first

    def __getitem__(self, stem: str) -> Definition:
        """The definition, imported when it is first asked for.

        Raises:
            OracleError: two packages announce it, or it is not what an oracle is.

        """
        if stem not in self._loaded:
            self._loaded[stem] = self.place(stem).load()
        return self._loaded[stem]

    def __setitem__(self, stem: str, definition: Definition) -> None:
        self._loaded[stem] = definition

    def __delitem__(self, stem: str) -> None:
        del self._loaded[stem]

    def __contains__(self, stem: object) -> bool:
        """Whether it is known; imports nothing."""
        return stem in self._loaded or stem in self._named or stem in self._announced

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._named, *self._announced, *self._loaded}))

    def __len__(self) -> int:
        return len({*self._named, *self._announced, *self._loaded})

    def of_package(self, package: str = PROJECT) -> dict[str, Definition]:
        """The kernels that one package announces."""
        places = (place for found in self._announced.values() for place in found)
        return {p.point.name: p.load() for p in places if owner(p.point) == package}

    def find(self, stem: str) -> Definition:
        """The kernel called `stem`.

        Raises:
            ProblemError: no kernel has that name; says the nearest.
            OracleError: what says its meaning is not right.

        """
        if stem not in self:
            hint = nearest(stem, self) or f"known: {', '.join(self)}"
            raise ProblemError(f"no oracle says what kernel `{stem}` computes", hint=hint)
        return self[stem]


KERNELS = Kernels()
"""Those of the packages that are installed."""


def find(stem: str) -> Definition:
    """The kernel called `stem` of those that are installed.

    Raises:
        ProblemError: no kernel has that name; says the nearest.

    """
    return KERNELS.find(stem)


def known(paths: tuple[Path, ...] = ()) -> Kernels:
    """Those in some folders, and those that are installed.

    Raises:
        OracleError: a folder holds no kernel, or two have one name.

    """
    return Kernels(folders(paths)) if paths else KERNELS
