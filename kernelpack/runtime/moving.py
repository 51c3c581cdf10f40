"""A packed launch whose arrays lie elsewhere at each start: their addresses alone are written."""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelpack.runtime.driver import DEFAULT_STREAMS
from kernelpack.runtime.launch import Entries, Launch
from kernelpack.spec.params import MapParam


@dataclass(frozen=True, slots=True)
class Pointing:
    """A parameter's target: an array, by its number, and bytes from its first element."""

    array: int
    offset_bytes: int


class Moving:
    """A launch and the parameters that point into arrays. One thread at a time may use it.

    Args:
        launch: packed for arrays of the same shapes.
        entries: libcuda's functions.
        pointing: of the parameters that point into arrays, by index.

    Attributes:
        map_places: of each tensor map its array, by its number, bytes from that one's first
            element, and its own address in this process.
        word_places: likewise of each pointer.

    """

    def __init__(self, launch: Launch, entries: Entries, pointing: Mapping[int, Pointing]) -> None:
        self.launch, self._entries = launch, entries
        params = launch.function.variant.params
        maps = {i for i in pointing if isinstance(params[i], MapParam)}
        word = ctypes.c_uint64.from_address
        listed = {
            i: (to.array, to.offset_bytes, launch.address_of(i)) for i, to in pointing.items()
        }
        self.map_places = [place for i, place in listed.items() if i in maps]
        self.word_places = [place for i, place in listed.items() if i not in maps]
        self._words = [(word(at), array, offset) for array, offset, at in self.word_places]
        self._context = launch.context
        self._seen_context = ctypes.c_void_p()
        self._seen_address = ctypes.addressof(self._seen_context)
        self._status = ctypes.c_int()

    def put(self, pointers: Sequence[int]) -> bool:
        """Write the addresses of arrays, all present; whether the driver did it."""
        for word, array, offset in self._words:
            word.value = pointers[array] + offset
        replace, failed = self._entries.replace_address, 0
        for array, offset, at in self.map_places:
            failed |= replace(at, pointers[array] + offset)
        return not failed

    def takes(self, stream: int) -> bool:
        """Whether a stream is known to be the device's: a default one, or of its context."""
        if stream in DEFAULT_STREAMS:
            return True
        failed = self._entries.stream_context(stream, self._seen_address)
        return not failed and self._seen_context.value == self._context

    def is_capturing(self, stream: int) -> bool | None:
        """Whether a stream is in a capture; None where the thread has no context to ask in."""
        failed = self._entries.is_capturing(stream, ctypes.addressof(self._status))
        return None if failed else bool(self._status.value)

    @property
    def functions(self) -> tuple[int, ...]:
        """The addresses of libcuda's functions, as `Entries` has them."""
        return self._entries.functions

    @property
    def device(self) -> int:
        """The ordinal of the device."""
        return self.launch.function.device.ordinal
