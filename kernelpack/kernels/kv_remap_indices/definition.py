"""The index remap as `run`, `verify` and the tests on a GPU see it: its cases and its oracle."""

from dataclasses import replace
from typing import Any

import numpy as np

from kernelpack.kernels.definition import Arrays, Definition, Expected
from kernelpack.kernels.kv_remap_indices import problem
from kernelpack.kernels.kv_remap_indices.problem import ABIS, KERNEL, Case

# name, then what is not as in Case; several rules at once in the first ones
_SMALL: tuple[tuple[str, dict[str, Any]], ...] = (
    ("telling_paged", {"t": 7, "k": 37, "spare": 3, "garbage": True}),
    ("telling_ragged", {"t": 6, "k": 40, "storage": "ragged", "garbage": True}),
    ("telling_slots", {"t": 3, "k": 8, "spare": 1, "storage": "slots", "by_token": False}),
    ("telling_many", {"t": 300, "k": 120}),  # more fours than a small device has threads
    ("paged", {}),
    ("continuous", {"storage": "continuous"}),
    ("continuous_garbage", {"storage": "continuous", "garbage": True, "blocks": 3}),
    ("slots", {"storage": "slots", "sequences": 40}),
    ("ragged", {"storage": "ragged"}),
    ("token_is_sequence", {"by_token": False, "t": 3}),
    ("more_tokens_than_sequences", {"by_token": False, "t": 9}),
    ("page_1", {"page": 1, "pages": 30, "blocks": 200}),
    ("page_3", {"page": 3, "pages": 7, "blocks": 50}),
    ("page_640", {"page": 640, "pages": 2}),
    ("one_entry", {"k": 1, "t": 300}),
    ("one_sequence", {"sequences": 1}),
    ("three_entries", {"k": 3, "spare": 1}),
    ("four_entries_apart", {"k": 4, "spare": 4}),
)
_LARGE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("prefill", {"t": 4096, "k": 2048, "page": 64, "sequences": 16, "pages": 64, "blocks": 1024}),
    ("decode", {"t": 256, "k": 2048, "sequences": 256, "pages": 128, "blocks": 9000}),
    ("many_tokens", {"t": 70_000, "k": 5, "garbage": True}),
)
TELLING = 4


def cases() -> tuple[Case, ...]:
    """Every case to verify."""
    listed = (Case(name=name, **given) for name, given in (*_SMALL, *_LARGE))
    return tuple(replace(case, seed=seed) for seed, case in enumerate(listed))


def small() -> tuple[Case, ...]:
    """The cases of few bytes that still cover every rule."""
    return cases()[: len(_SMALL)]


def telling() -> tuple[Case, ...]:
    """The few cases that every variant is verified on."""
    return cases()[:TELLING]


def expected(case: Case, arrays: Arrays) -> dict[str, Expected]:
    """Encoded indices, exactly."""
    given = case.problem
    t = np.arange(given.t)[:, None] * given.indices_stride + np.arange(given.k)
    b = arrays["token_sequences"] if given.has_token_sequences else np.arange(given.t)
    of_token = np.broadcast_to(b[:, None], (given.t, given.k))
    places = arrays["indices"][t]
    found = given.lookup.encode(of_token, places, arrays["table"], arrays["offsets"])
    return {"out": Expected(value=found.astype(np.float64), bound=np.zeros(found.shape))}


KV_REMAP_INDICES = Definition(
    stem=KERNEL,
    abis=ABIS,
    cases=cases,
    small=small,
    telling=telling,
    case=problem.case_of,
    emulated=problem.EMULATED,
    inputs=problem.inputs,
    expected=expected,
)
