"""The kernels whose meaning is known, by stem: those that installed packages announce.

A package announces a kernel by an entry point of the group `kernelpack.kernels`, its stem =
`module:DEFINITION`. kernelpack's own are found so too. What a kernel means is imported when it is
asked for, and no other.
"""

from collections.abc import Iterator, MutableMapping
from functools import cached_property
from importlib.metadata import EntryPoint

from kernelpack.errors import OracleError, ProblemError
from kernelpack.installed import PROJECT, announced, owner
from kernelpack.kernels.definition import Definition
from kernelpack.spec.nearest import nearest

GROUP = "kernelpack.kernels"
"""The entry point group."""


class Kernels(MutableMapping[str, Definition]):
    """Stem → definition; a program may put one of its own beside those announced."""

    def __init__(self) -> None:
        self._loaded: dict[str, Definition] = {}

    @cached_property
    def _places(self) -> dict[str, list[EntryPoint]]:
        """Where each kernel's meaning is; several where packages announce one stem."""
        found: dict[str, list[EntryPoint]] = {}
        for point in announced(GROUP):
            found.setdefault(point.name, []).append(point)
        return found

    def __getitem__(self, stem: str) -> Definition:
        """The definition, imported when it is first asked for.

        Raises:
            OracleError: two packages announce it, or what is announced is not there.

        """
        if stem not in self._loaded:
            self._loaded[stem] = _load(self._places[stem])
        return self._loaded[stem]

    def __setitem__(self, stem: str, definition: Definition) -> None:
        self._loaded[stem] = definition

    def __delitem__(self, stem: str) -> None:
        del self._loaded[stem]

    def __contains__(self, stem: object) -> bool:
        """Whether it is known; imports nothing."""
        return stem in self._loaded or stem in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._places, *self._loaded}))

    def __len__(self) -> int:
        return len({*self._places, *self._loaded})

    def of_package(self, package: str = PROJECT) -> dict[str, Definition]:
        """The kernels that one package announces."""
        points = (point for found in self._places.values() for point in found)
        return {point.name: _load([point]) for point in points if owner(point) == package}


KERNELS = Kernels()


def find(stem: str) -> Definition:
    """The kernel called `stem`.

    Raises:
        ProblemError: no kernel has that name; says the nearest.

    """
    if stem not in KERNELS:
        hint = nearest(stem, KERNELS) or f"known: {', '.join(KERNELS)}"
        raise ProblemError(f"no oracle says what kernel `{stem}` computes", hint=hint)
    return KERNELS[stem]


def _load(points: list[EntryPoint]) -> Definition:
    point, where = points[0], _place(points[0])
    if len(points) > 1:
        names = " and ".join(owner(each) for each in points)
        hint = "uninstall one of them"
        raise OracleError(f"{names} announce one kernel `{point.name}`", where=GROUP, hint=hint)
    try:
        found = point.load()
    except (ImportError, AttributeError) as error:
        hint = "install the package again"
        raise OracleError(f"is not there: {error}", where=where, hint=hint) from error
    if not isinstance(found, Definition) or found.stem != point.name:
        raise OracleError(f"is no definition of `{point.name}`", where=where)
    return found


def _place(point: EntryPoint) -> str:
    return f"`{point.value}`, announced by {owner(point)}"
