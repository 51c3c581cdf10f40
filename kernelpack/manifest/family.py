"""A manifest as the kernels of one family have it: what all share, and what the block says.

The stages after the schema (names, combinations, variants) read this and never ask which of the
two said a thing; `at` knows, for messages.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from typing import Any, TypeVar

from kernelpack.errors import ManifestError
from kernelpack.manifest.model import Manifest
from kernelpack.manifest.parts import (
    ELSEWHERE,
    ArgumentPart,
    BudgetPart,
    Claim,
    LaunchPart,
    NumberPart,
    ParamPart,
    Part,
)
from kernelpack.manifest.reader import Location
from kernelpack.spec.expr import Expr

P = TypeVar("P", bound=Part)


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyManifest:
    """The manifest of one family's kernels.

    Attributes:
        manifest: the whole of it.
        family: its name.
        template: path under templates/.
        let: the constants, each after those that it names.
        derive: likewise.
        places: where a thing is in the whole, if not here.

    The other attributes are those of `Manifest`, with what the block adds.

    """

    manifest: Manifest
    family: str
    template: str
    where: tuple[Claim, ...]
    let: Mapping[str, Expr]
    derive: Mapping[str, Expr]
    arguments: Mapping[str, ArgumentPart]
    params: tuple[ParamPart, ...]
    launch: LaunchPart
    serves: tuple[Claim, ...]
    cost: Expr
    workspace_bytes: Expr
    budget: BudgetPart
    places: Mapping[Location, Location] = field(repr=False)

    @property
    def kernel(self) -> str:
        """The kernel's stem."""
        return self.manifest.kernel

    @property
    def sizes(self) -> Mapping[str, str]:
        """The sizes of a problem, and what each means."""
        return self.manifest.sizes

    @property
    def numbers(self) -> Mapping[str, NumberPart]:
        """The numbers of a call."""
        return self.manifest.numbers

    @property
    def axes(self) -> Mapping[str, tuple[int | str, ...]]:
        """The values of each axis."""
        return self.manifest.axes

    def at(self, *location: str | int, key: bool = False) -> str:
        """`path:line:column` of a value, or of its key, by where it would be without blocks."""
        for end in range(len(location), 0, -1):
            if place := self.places.get(location[:end]):
                return self.manifest.at(*place, *location[end:], key=key)
        return self.manifest.at(*location, key=key)


def of_family(manifest: Manifest, family: str) -> FamilyManifest:
    """A manifest as one family's kernels see it.

    Raises:
        ManifestError: the shared part and the block both say a thing, or neither one that must be
            said, or definitions need each other in a circle.

    """
    both = _Both(manifest, family)
    return FamilyManifest(
        manifest=manifest,
        family=family,
        template=both.block.template,
        where=both.claims("where"),
        let=both.definitions("let"),
        derive=both.definitions("derive"),
        arguments={
            name: part for name, part in manifest.arguments.items() if part.family in ("", family)
        },
        params=both.params(),
        launch=both.keys("launch", LaunchPart),
        serves=both.claims("serves"),
        cost=both.value("cost"),
        workspace_bytes=both.value("workspace_bytes"),
        budget=both.keys("budget", BudgetPart),
        places=both.places,
    )


class _Both:
    """The shared part and a family's block, put together key by key."""

    def __init__(self, manifest: Manifest, family: str) -> None:
        self.shared, self.family, self.block = manifest, family, manifest.families[family]
        self.places: dict[Location, Location] = {}

    def claims(self, key: str) -> tuple[Claim, ...]:
        """The shared claims, then the block's."""
        shared, own = getattr(self.shared, key), getattr(self.block, key)
        if own:
            self.places[(key,)] = self._own(key)
        for index in range(len(shared)):
            self.places[key, index] = (key, index)
        for index in range(len(own)):
            self.places[key, len(shared) + index] = self._own(key, index)
        return (*shared, *own)

    def definitions(self, key: str) -> dict[str, Expr]:
        """The names of both, in the order of the file but each after those that it needs."""
        shared, own = getattr(self.shared, key), getattr(self.block, key)
        for name in own:
            if name in shared:
                raise self._twice(f"`{name}` is already defined under `{key}`", key, name)
            self.places[key, name] = self._own(key, name)
        named = {**shared, **own}
        try:
            return {name: named[name] for name in in_order(named)}
        except CycleError as error:
            circle = error.args[1][::-1]
            what = f"`{circle[0]}` needs itself: {' needs '.join(circle)}"
            place = self.places.get((key, circle[0]), (key, circle[0]))
            raise ManifestError(what, where=self.shared.at(*place, key=True)) from error

    def params(self) -> tuple[ParamPart, ...]:
        """Those for this family and for every one."""
        params = [p for p in enumerate(self.shared.params) if p[1].family in ("", self.family)]
        for index, (place, _) in enumerate(params):
            self.places["params", index] = ("params", place)
        return tuple(param for _, param in params)

    def keys(self, key: str, kind: type[P]) -> P:
        """A mapping whose keys are each in one of the two places."""
        shared, own = getattr(self.shared, key), getattr(self.block, key)
        for name in own.model_fields_set:
            if name in shared.model_fields_set:
                raise self._twice(f"`{name}` is given for all families", key, name)
            self.places[key, name] = self._own(key, name)
        given = {name: getattr(part, name) for part in (shared, own) for name in _given(part)}
        for name in _needed(shared):
            if name not in given:
                hint = f"give it under `{key}`, or under `{key}` of `for: {self.family}`"
                where = self.shared.at(*self._own(key), key=True)
                what = f"`{key}` has no `{name}` for {self.family}"
                raise ManifestError(what, where=where, hint=hint)
        return kind.model_construct(**given)

    def value(self, key: str) -> Expr:
        """An expression that is in one of the two places, or in none."""
        own = key in self.block.model_fields_set
        if own:
            if key in self.shared.model_fields_set:
                raise self._twice(f"`{key}` is given for all families", key)
            self.places[(key,)] = self._own(key)
        found: Expr = getattr(self.block if own else self.shared, key)
        return found

    def _own(self, *location: str | int) -> Location:
        return ("for", self.family, *location)

    def _twice(self, what: str, *location: str) -> ManifestError:
        where = self.shared.at(*self._own(*location), key=True)
        return ManifestError(what, where=where, hint="keep one of the two")


def _given(part: Part) -> Iterator[str]:
    """The keys that a mapping has, in the order of the model."""
    yield from (name for name in type(part).model_fields if name in part.model_fields_set)


def _needed(part: Part) -> Iterator[str]:
    """The keys that must be in one of the two places: those that have no default."""
    fields: Mapping[str, Any] = type(part).model_fields
    yield from (name for name, known in fields.items() if known.default is ELSEWHERE)


def in_order(named: Mapping[str, Expr]) -> Iterator[str]:
    """Names as they stand, but each after those that its expression names.

    Raises:
        CycleError: some need each other.

    """
    names = list(named)
    places = {name: place for place, name in enumerate(names)}
    sorter = TopologicalSorter(
        {name: sorted((named[name].names & named.keys()) - {name}) for name in names}
    )
    sorter.prepare()
    ready: list[int] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heappush(ready, places[name])
        first = names[heappop(ready)]
        yield first
        sorter.done(first)
