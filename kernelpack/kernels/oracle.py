"""An oracle in a file of about twenty lines, and the definition that is made of it.

    from kernelpack.oracle import every, normal, within

    CASES = every(rows=(1, 3), width=(1024, 4096), dtype=("bf16", "fp16"))

    def inputs(sizes, random):
        return {"x": normal(random, (sizes.rows, sizes.width), sizes.dtype)}

    def expected(sizes, arrays):
        return {"y": within(2 * arrays["x"].astype("float64"), sizes.dtype, ulps=1)}

`CASES` are small enough for the emulator; `LARGE`, which may be left out, are for a GPU alone. A
case gives each size of the manifest a value; a word stands for a type. `ABIS`, a range, says which
ABIs of the kernel are meant: all if left out.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

from kernelpack.errors import OracleError, ProblemError
from kernelpack.kernels.definition import Arrays, Definition, Expected
from kernelpack.kernels.guarded import Guarded
from kernelpack.kernels.typed import Typed
from kernelpack.spec.expr import Word
from kernelpack.spec.nearest import nearest
from kernelpack.spec.number import written

Value = int | float | str
Sizes = Mapping[str, Value]
PARTS = ("CASES", "inputs", "expected")
"""The parts of an oracle."""
ANY_ABI = range(1, 2**31)
SEED = "seed"


class Named(SimpleNamespace):
    """The values of a case by name."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a number or a word
        """A requested part that is missing."""
        raise AttributeError(f"cases give no `{name}`: they give {', '.join(vars(self))}")


@dataclass(frozen=True, slots=True)
class Case:
    """A problem: the sizes of a call by name, in the oracle's order, and the seed of its inputs."""

    given: tuple[tuple[str, Value], ...]
    seed: int = 0

    @property
    def name(self) -> str:
        """All of it in a line, the words first."""
        words = [pair for pair in self.given if isinstance(pair[1], str)]
        return ",".join([*_texts(words), *filter(None, [self.kind])])

    @property
    def kind(self) -> str:
        """The name without its words."""
        numbers = [pair for pair in self.given if not isinstance(pair[1], str)]
        return ",".join(_texts([*numbers, *([(SEED, self.seed)] if self.seed else [])]))

    @property
    def sizes(self) -> dict[str, Any]:
        """The problem as the manifest names it: a word is the number that stands for it."""
        return {name: Word(v) if isinstance(v, str) else v for name, v in self.given}

    @property
    def named(self) -> Named:
        """The sizes as the functions of an oracle see them."""
        return Named(**dict(self.given))


def definition(stem: str, parts: Mapping[str, Any], origin: str, version: str = "") -> Definition:
    """An oracle, as `verify`, `run` and the tests on a GPU share it.

    Args:
        stem: the kernel's name.
        parts: the names of its file.
        origin: the file, for messages.
        version: a digest of the file.

    Raises:
        OracleError: a part is missing, or is not what it should be.

    """
    _check_parts(parts, origin)
    small = _cases(parts["CASES"], "CASES", origin)
    large = _cases(parts.get("LARGE", ()), "LARGE", origin)
    _check_alike([*small, *large], origin)
    guarded = Guarded(origin)

    def inputs(case: Case) -> Arrays:
        random = np.random.default_rng(case.seed)
        return guarded.arrays("inputs", parts["inputs"], case.named, random)

    def expected(case: Case, arrays: Arrays) -> dict[str, Expected]:
        return guarded.expected("expected", parts["expected"], case.named, arrays)

    return Definition(
        stem=stem,
        abis=parts.get("ABIS", ANY_ABI),
        cases=lambda: (*small, *large),
        small=lambda: small,
        telling=lambda: small,
        case=lambda typed: _typed(typed, (*large, *small)[0], stem),
        emulated={name: str(value) for name, value in small[0].given},
        kind=lambda case: case.kind,
        inputs=inputs,
        expected=expected,
        origin=origin,
        version=version,
    )


def every(**sizes: Value | Iterable[Value]) -> tuple[dict[str, Value], ...]:
    """A case for every combination of these values; one that does not change is given alone."""
    lists = [[v] if isinstance(v, str | int | float) else list(v) for v in sizes.values()]
    return tuple(dict(zip(sizes, values, strict=True)) for values in product(*lists))


def _texts(pairs: Iterable[tuple[str, Value]]) -> list[str]:
    return [f"{name}={value}" for name, value in pairs]


def _check_parts(parts: Mapping[str, Any], origin: str) -> None:
    names = [name for name in parts if not name.startswith("_")]
    for name in PARTS:
        if name not in parts:
            hint = nearest(name, names) or f"an oracle has {', '.join(PARTS)}"
            raise OracleError(f"has no `{name}`", where=origin, hint=hint)
    for name in PARTS[1:]:
        if not callable(parts[name]):
            raise OracleError(f"`{name}` is not a function", where=origin)
    abis = parts.get("ABIS", ANY_ABI)
    if not isinstance(abis, range) or not abis:
        hint = "such as range(1, 2), of the manifest's `abi: 1`"
        raise OracleError("`ABIS` is not a range of numbers", where=origin, hint=hint)


def _cases(listed: object, name: str, origin: str) -> tuple[Case, ...]:
    """The cases of a list of mappings."""
    what = f"`{name}` is not a list of cases"
    hint = 'such as every(rows=(1, 3), dtype=("bf16", "fp16")): a mapping of names to values each'
    if isinstance(listed, str | Mapping) or not isinstance(listed, Iterable):
        raise OracleError(what, where=origin, hint=hint)
    found = []
    for number, case in enumerate(listed):
        place = f"{name}[{number}]"
        if not isinstance(case, Mapping) or not case or not all(isinstance(n, str) for n in case):
            raise OracleError(f"`{place}` is not a case", where=origin, hint=hint)
        found.append(Case(tuple((n, _value(v, n, place, origin)) for n, v in case.items())))
    if not found and name == PARTS[0]:
        raise OracleError(f"`{name}` is empty", where=origin, hint=hint)
    return tuple(dict.fromkeys(found))


def _value(value: object, name: str, place: str, origin: str) -> Value:
    if name == SEED:
        what, hint = f"`{place}` has a size `{SEED}`", "that is the seed of its inputs: rename it"
        raise OracleError(what, where=origin, hint=hint)
    if isinstance(value, np.integer | np.floating):
        return value.item()
    if isinstance(value, int | float | str):
        return int(value) if isinstance(value, bool) else value
    what = f"`{name}` of `{place}` is a {type(value).__name__}"
    raise OracleError(what, where=origin, hint="a number, or a word such as 'bf16'")


def _check_alike(cases: list[Case], origin: str) -> None:
    """Every case gives the same names."""
    names = {name for name, _ in cases[0].given}
    for case in cases:
        if others := names ^ {name for name, _ in case.given}:
            what = f"some cases have `{min(others)}`, and {case.given} is another"
            raise OracleError(what, where=origin, hint="give every case the same names")


def _typed(typed: Mapping[str, str], known: Case, stem: str) -> Case:
    """The case that a person types; what is left out is as in a known one.

    Raises:
        ProblemError: a name is unknown, or a value is not valid for its size.

    """
    defaults = {name: str(value) for name, value in known.given} | {SEED: "0"}
    read = Typed(typed, defaults, stem)
    given = tuple((name, _read(read, name, value)) for name, value in known.given)
    return Case(given, seed=read.number(SEED, least=0))


def _read(read: Typed, name: str, like: Value) -> Value:
    """A typed value of the kind that a case has."""
    kinds: dict[type, Callable[[], Value]] = {
        int: lambda: read.number(name, least=0),
        float: lambda: _float(read, name),
    }
    return kinds.get(type(like), lambda: read.texts[name])()


def _float(read: Typed, name: str) -> float:
    try:
        return written(read.texts[name])
    except ProblemError as error:
        what = f"`{name}` must be a number: {error.what}"
        raise ProblemError(what, where=read.kernel, hint=error.hint) from None
