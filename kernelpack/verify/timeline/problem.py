"""The input of a recorded launch: a case of an oracle, or else random numbers.

A trace compares nothing, so a kernel of one's own needs no oracle: its floats are random and its
integers 0, for they may be indices.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from kernelpack.errors import ProblemError
from kernelpack.kernels.definition import Arrays, Case, Definition
from kernelpack.spec.expr import Word, evaluate
from kernelpack.spec.nearest import nearest
from kernelpack.spec.number import written
from kernelpack.spec.params import Access
from kernelpack.spec.variant import Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The sizes of a call of a kernel, and the arrays that a variant reads for them."""

    kernel: str
    name: str
    sizes: Mapping[str, float]
    inputs: Callable[[Variant], Arrays]


def known(definition: Definition, case: Case) -> Problem:
    """A case of a kernel that has an oracle."""
    return Problem(
        kernel=definition.stem,
        name=case.name,
        sizes=case.sizes,
        inputs=lambda _: definition.inputs(case),
    )


def plain(kernel: str, texts: Mapping[str, str]) -> Problem:
    """A problem of any other kernel, by the sizes that a person types: `n=1000 dtype=fp32`."""
    sizes = {name: _number(text) for name, text in texts.items()}
    name = ",".join(f"{name}={text}" for name, text in texts.items())
    return Problem(kernel=kernel, name=name, sizes=sizes, inputs=partial(_random, sizes))


def check_sizes(problem: Problem, variant: Variant) -> None:
    """Refuse a problem with a missing or unknown size or number.

    Raises:
        ProblemError: names it, and what it means, or the nearest that there is.

    """
    needed = {size.name: size.doc for size in variant.sizes}
    needed |= {each.name: each.doc for each in variant.numbers if each.default is None}
    known = [*needed, *(each.name for each in variant.numbers if each.name not in needed)]
    names = f"it takes {' '.join(f'{name}=…' for name in known)}"
    for name, doc in needed.items():
        if name not in problem.sizes:
            what = f"`{name}` is not given: {doc}"
            raise ProblemError(what, where=problem.kernel, hint=names)
    for name in problem.sizes:
        if name not in known:
            hint = nearest(name, known) or names
            raise ProblemError(f"no size `{name}`", where=problem.kernel, hint=hint)


def _number(text: str) -> float:
    """A number; else a word, such as a data type, as the manifest's expressions compare it."""
    if text.isascii() and text.removeprefix("-").isdecimal() and len(text) <= _MAX_DIGITS:
        return int(text)
    return written(text) if text[:1] in _NUMERIC or text == "inf" else Word(text)


_NUMERIC = frozenset("-+.0123456789")
"""The first characters of numbers, and of no word."""
_MAX_DIGITS = 40
"""Of an integer: sizes of 64 bits have fewer."""


def _random(sizes: Mapping[str, float], variant: Variant) -> Arrays:
    generator = np.random.default_rng(0)
    arrays: Arrays = {}
    for argument in variant.arguments:
        if argument.access is not Access.WRITE:
            shape = [evaluate(side, sizes) for side in argument.shape]
            values = generator.standard_normal(shape) * argument.dtype.is_float
            arrays[argument.name] = values.astype(argument.dtype.numpy)
    return arrays
