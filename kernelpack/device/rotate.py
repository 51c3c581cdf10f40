"""Sets of a case's arrays on a GPU, together larger than its L2 cache, for launches in turn.

A kernel that runs again on the same arrays finds them in the cache, and is timed for another
machine than the one that serves. All sets hold the same values.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.errors import DeviceMemoryError
from kernelpack.kernels.definition import Arrays, Case
from kernelpack.load.library import Library, Memory
from kernelpack.spec.launch import bytes_of
from kernelpack.spec.variant import Variant

CACHES = 3
"""The sets together have so many times the bytes of the L2 cache, and that of each besides."""
MOST_SETS = 64

Addresses = dict[str, int]


class Sets:
    """The arrays of a case, several times over.

    Args:
        library: whose driver the device is of.
        case: the problem.
        arrays: its inputs.
        variants: those that will run; an array has room for what each of them needs.
        device: the ordinal.

    Attributes:
        case: the problem.
        bytes: what the arguments of one call hold: each is read or written once at least.
        addresses: of each set, the address of each argument.

    """

    def __init__(
        self,
        library: Library,
        case: Case,
        arrays: Arrays,
        variants: Sequence[Variant],
        device: int,
    ) -> None:
        self.case = case
        sizes = library.sizes(case.sizes, device)
        needs = [bytes_of(variant, sizes) for variant in variants]
        self.bytes = sum(needs[0].values())
        room = {name: _held(arrays.get(name)) for each in needs for name in each}
        for each in needs:
            room |= {name: max(size, room[name]) for name, size in each.items()}
        self._memory: list[dict[str, Memory]] = []
        for _ in range(sets_of(sum(room.values()), library.driver.cache_bytes(device))):
            try:
                self._memory.append(_upload(library, room, arrays, device))
            except DeviceMemoryError:
                if not self._memory:
                    raise
                break  # as many as there is room for
        self.addresses: list[Addresses] = [
            {name: memory.address for name, memory in held.items()} for held in self._memory
        ]


def sets_of(call_bytes: int, cache_bytes: int) -> int:
    """How many sets the cache cannot hold, where one has so many bytes."""
    return max(2, min(MOST_SETS, 1 + -(-CACHES * cache_bytes // max(1, call_bytes))))


def _held(array: NDArray[Any] | None) -> int:
    return 0 if array is None else array.nbytes


def _upload(
    library: Library, room: Mapping[str, int], arrays: Arrays, device: int
) -> dict[str, Memory]:
    made = {name: library.memory(size, device) for name, size in room.items()}
    for name, memory in made.items():
        if name in arrays:
            memory.write(np.ascontiguousarray(arrays[name]))
    return made
