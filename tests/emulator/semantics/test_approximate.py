"""Approximate instructions: the emulator keeps the error that the manual allows the hardware."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.emulator.semantics.bench import Case, evaluate
from tests.emulator.semantics.bounds import BOUNDS, Bound

FUNCTIONS: dict[str, tuple[Callable[..., np.ndarray], tuple[float, float]]] = {
    "div.full.f32": (np.divide, (1.0, 9.0)),
    "rcp.approx.f32": (np.reciprocal, (-9.0, 9.0)),
    "rsqrt.approx.ftz.f32": (lambda a: 1 / np.sqrt(a), (0.1, 99.0)),
    "sin.approx.f32": (np.sin, (-6.0, 6.0)),
    "cos.approx.f32": (np.cos, (-6.0, 6.0)),
    "lg2.approx.f32": (np.log2, (0.1, 99.0)),
    "ex2.approx.ftz.f32": (np.exp2, (-9.0, 9.0)),
    "tanh.approx.f32": (np.tanh, (-3.0, 3.0)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_is_within_the_bound(name: str):
    """32 random operands of the function's usual range."""
    function, (low, high) = FUNCTIONS[name]
    rng = np.random.default_rng(len(name))
    names = "ab"[: 2 if name.startswith("div") else 1]
    given = {n: rng.uniform(low, high, 32).astype(np.float32) for n in names}
    text = f"{name} %d, {', '.join(f'%{n}' for n in names)};"
    found = evaluate(Case(text, "f32", [], {n: ("f32", list(v)) for n, v in given.items()}))
    exact = function(*(values.astype(np.float64) for values in given.values()))
    assert (np.abs(found - exact) <= BOUNDS[name].of(exact)).all()


def test_a_pair_of_halves_is_within_the_bound():
    """ex2 of two f16."""
    halves = np.random.default_rng(1).uniform(-9, 9, 64).astype(np.float16)
    made = Case("ex2.approx.f16x2 %d, %a;", "b32", [], {"a": ("b32", list(halves.view(np.uint32)))})
    found, exact = evaluate(made).view(np.float16), np.exp2(halves.astype(np.float64))
    assert (np.abs(found - exact) <= BOUNDS["ex2.approx.f16x2"].of(exact)).all()


@pytest.mark.parametrize(
    ("bound", "allowed"),
    [(Bound(ulps=2), 2 * 2.0**-22), (Bound(relative=0.5), 1.5), (Bound(absolute=0.25), 0.25)],
)
def test_a_bound_at_three(bound: Bound, allowed: float):
    """An ulp of 3 is 2^-22 in f32."""
    assert bound.of(np.array([3.0])) == allowed
