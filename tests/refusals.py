"""Calls that Python, C++ and C refuse, in the same words: of a kernel of tests.fakes.variants.

A call opens a bundle, selects for SIZES and packs with ADDRESSES; what a row does otherwise is all
that is wrong with it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from hashlib import sha256
from math import nan
from pathlib import Path

from kernelpack import errors
from kernelpack.bundle.format import Kind, Section
from kernelpack.spec.expr import constant, parse
from kernelpack.spec.variant import Variant
from tests.bundle.forge import forge, poke_record, poke_row
from tests.cpp.compiler import written
from tests.fakes.keys import make_keys
from tests.fakes.variants import NUMBERS, variant

KERNEL = "lora_shrink_qkv"
SIZES = {"m": 100, "n": 16, "k": 72, "g": 4, "n_active": 3, "a_dtype": 9, "out_dtype": 9}
NAMES = ("c", "a", "b", "a_offsets", "expert_ids")
ADDRESSES = {name: 0x10000 * place for place, name in enumerate(NAMES, 1)}

Numbers = Mapping[str, int | None]
"""By name; None: not given."""


class Status(IntEnum):
    """What C gives: `kp_status`."""

    BUNDLE = 1
    EXPRESSION = 2
    PROBLEM = 3
    SELECTION = 4
    TENSOR_MAP = 5


ERRORS = {
    Status.BUNDLE: errors.BundleError,
    Status.EXPRESSION: errors.ExpressionError,
    Status.PROBLEM: errors.ProblemError,
    Status.SELECTION: errors.SelectionError,
    Status.TENSOR_MAP: errors.TensorMapError,
}


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Changes to a call that is served, and their messages."""

    status: Status
    says: str
    kernel: str = KERNEL
    sizes: Numbers = field(default_factory=dict)
    addresses: Numbers = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    edit: Callable[[bytearray], None] | None = None  # of the bundle's index
    made: Variant = field(default_factory=variant)  # the bundle's only one
    is_trusted_only: bool = False  # whether the bundle must be signed, which it is not

    def given(self) -> tuple[dict[str, int], dict[str, int]]:
        """The sizes and the addresses of the call."""
        return _given(SIZES, self.sizes), _given(ADDRESSES, self.addresses)

    def bundle(self, folder: Path) -> Path:
        """The bundle that the call opens."""
        path = written(folder / "x.kpk", [self.made])
        return forge(path, self.edit) if self.edit else path

    def trust(self, folder: Path) -> Path | None:
        """The key that must have signed it."""
        return make_keys(folder)[1] if self.is_trusted_only else None


def _given(usual: Numbers, other: Numbers) -> dict[str, int]:
    return {name: value for name, value in {**usual, **other}.items() if value is not None}


def _problem(says: str, **rest: Numbers) -> Refusal:
    return Refusal(status=Status.PROBLEM, says=says, **rest)


def _forged(says: str, edit: Callable[[bytearray], None]) -> Refusal:
    return Refusal(status=Status.BUNDLE, says=says, edit=edit)


def _another_id(index: bytearray) -> None:
    """An edit: the entry has another id than its variant, under that id's digest."""
    held = variant().id.encode()
    said = held.replace(b"tile=64", b"tile=65")
    at = index.index(held)
    index[at : at + len(held)] = said
    poke_row(Section.ENTRIES, 0, 0, sha256(said).digest())(index)


def _in_blocks(*sides: str, grid: str = "2") -> Variant:
    """A variant whose blocks have these sides."""
    known = variant()
    block, blocks = (parse(sides[0]), parse(sides[1]), parse(sides[2])), parse(grid)
    launch = replace(known.launch, block=block, grid=(blocks, constant(1), constant(1)))
    return replace(known, launch=launch)


SERVES = "no variant of lora_shrink_qkv serves m=100, n=16, k=72, g=4, n_active=3, a_dtype=9"
NO_SERVICE = Refusal(status=Status.SELECTION, says=SERVES, sizes={"out_dtype": 10})

WITH_NUMBERS = variant(numbers=NUMBERS)


def _of_numbers(says: str, **numbers: float) -> Refusal:
    return Refusal(status=Status.PROBLEM, says=says, made=WITH_NUMBERS, numbers=numbers)


REFUSALS = {
    # plans
    "a size that the kernel has not": _problem(
        "lora_shrink_qkv: no size `mm`\nhint: sizes: m, n, k, g", sizes={"mm": 1}
    ),
    "a number that is not given": _of_numbers("lora_shrink_qkv: `eps` is not given: what is added"),
    "a number that is NaN": _of_numbers("`eps`: must be a number, not NaN", eps=nan),
    "a number that is too large": _of_numbers(
        "parameter `alpha_fp16`: -1e+09 does not fit in fp16", eps=1.0, alpha=-1e9
    ),
    "a size below 0": _problem("`m`: must be at least 0, not -1", sizes={"m": -1}),
    "a size that no guard looks at, below 0": _problem(
        "`g`: must be at least 0, not -1099511627776", sizes={"g": -(2**40)}
    ),
    "no size": Refusal(status=Status.EXPRESSION, says="`k % 8 == 0` needs `k`", sizes={"k": None}),
    "a size that leaves 64 bits": Refusal(
        status=Status.EXPRESSION, says="does not fit in 64 bits", sizes={"n_active": 2**62}
    ),
    "a guard": NO_SERVICE,
    "another kernel": Refusal(
        status=Status.SELECTION, says="the bundle holds no kernel `other`", kernel="other"
    ),
    "an argument that the kernel has not": _problem(
        "lora_shrink_qkv: no argument `w`\nhint: arguments: c, a, b", addresses={"w": 0x10000}
    ),
    "no address": _problem("no address for argument `b`", addresses={"b": None}),
    "an output that lies nowhere": _problem(
        "`c`: 0x0 is not an address of device memory", addresses={"c": 0}
    ),
    "an input that lies nowhere": _problem(
        "`b`: 0x0 is not an address of device memory", addresses={"b": 0}
    ),
    "an address between two elements": _problem(
        "`a`: must be aligned to 16 bytes, not 0x8", addresses={"a": 0x8}
    ),
    "more blocks than a grid has": _problem(
        "grid.x must be 1 to 2147483647", sizes={"n_active": 2**31}
    ),
    "a block of more threads than 64 bits count": Refusal(
        status=Status.PROBLEM,
        says="block.x must be 1 to 1024, not 1099511627776",
        made=_in_blocks("m", "n", "k"),
        sizes={"m": 2**40, "n": 2**40, "k": 2**40},
    ),
    "a block that no device has, where the grid asks how many fit": Refusal(
        status=Status.PROBLEM,
        says="threads of a block must be 1 to 1024, not 4096",
        made=_in_blocks("1024", "4", "1", grid="fitting_clusters(2)"),
    ),
    "a number that a parameter cannot hold": _problem(
        "parameter `m`: 4294967296 does not fit in u32", sizes={"m": 2**32}
    ),
    # tensor maps
    "a dimension that no map has": Refusal(
        status=Status.TENSOR_MAP, says="a dimension must be", sizes={"k": 2**33}
    ),
    # indexes that were made to hurt
    "a row that is not there": _forged(
        "row 4294967295 of images", poke_row(Section.ENTRIES, 0, 3, 2**32 - 1)
    ),
    "another kernel's entry": _forged(
        "kernel 0 lists row 0, which is of 1", poke_row(Section.ENTRIES, 0, 4, 1)
    ),
    "an id that says another thing": _forged("tile=65]` holds the variant `", _another_id),
    "a parameter elsewhere": _forged(
        "parameters are not where its target has them", poke_record(Kind.POINTER, 2, 1)
    ),
    "a text for people that leaves the strings": _forged(
        "leaves the strings or is too long", poke_record(Kind.NAME, 3, 2**32 - 1)
    ),
    "an element that no map has": _forged("element 16 is not known", poke_record(Kind.MAP, 7, 16)),
    "a number that is not there": replace(
        _forged("names number 2 of 2", poke_record(Kind.NUMBER_PARAM, 5, 2)), made=WITH_NUMBERS
    ),
    "a default that is not a number": replace(
        _forged("is NaN by default", poke_record(Kind.NUMBER, 6, nan)), made=WITH_NUMBERS
    ),
    # options
    "nobody's signature": Refusal(status=Status.BUNDLE, says="is not signed", is_trusted_only=True),
}
