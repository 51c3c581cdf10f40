"""Memory between the steps of a chain: one array of the caller's, or a new one, cut into parts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from kernelpack.formats.dtype import DType
from kernelpack.load.library import Library
from kernelpack.ops.arrays import Array, DeviceArray, host_view, view
from kernelpack.ops.checks import check_array, check_contiguous, require
from kernelpack.ops.emulated import EmulatedLibrary, is_for_emulator, loaded
from kernelpack.ops.operation import Made
from kernelpack.ops.output import Beside
from kernelpack.ops.stream import Stream, stream_handle

ALIGN = 256
"""Bytes that each part begins at a multiple of."""


def size_of(parts: Mapping[str, Made]) -> int:
    """Bytes of all parts."""
    return sum(_room(part) for part in parts.values())


def _room(part: Made) -> int:
    return -(-part.dtype.bytes_of(prod(part.shape)) // ALIGN) * ALIGN


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(DeviceArray):
    """A part of a workspace.

    Attributes:
        of: the workspace.

    """

    of: Array


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call runs, and so where its new arrays lie.

    Attributes:
        library: the kernels on a GPU; None: the emulator's, for numpy arrays.
        device: the ordinal of the GPU.
        stream: the handle that arrays are made ready for.
        beside: the array that new ones are like.
        made: the new arrays.

    """

    library: Library | None
    device: int = 0
    stream: int = 0
    beside: Array = None
    made: list[Array] = field(default_factory=list)

    @classmethod
    def of(
        cls, array: Array, name: str, library: Library | EmulatedLibrary | None, stream: Stream
    ) -> "Place":
        """Where an array of the call lies."""
        if is_for_emulator((array,), library):
            return cls(None)
        held, handle = loaded(library), stream_handle(stream)
        return cls(held, view(array, name, handle, held).device or 0, handle, array)

    def sides(self, array: Array, name: str, dims: str, kernel: str) -> tuple[int, ...]:
        """Elements along each dimension of an array that must have these."""
        if self.library is None:
            seen = host_view(array, name)
        else:
            seen = view(array, name, self.stream, self.library)
        check_array(seen, name, dims, (seen.dtype,), kernel)
        return seen.shape

    def new(self, made: Made) -> Array:
        """An array of its own memory."""
        if self.library is None:
            return np.zeros(made.shape, made.dtype.numpy)
        beside = Beside(
            library=self.library, device=self.device, stream=self.stream, arrays=(self.beside,)
        )
        array = beside.new(made.shape, made.dtype)
        self.made.append(array)
        return array

    def cut(
        self, workspace: Array, parts: Mapping[str, Made], kernel: str
    ) -> tuple[dict[str, Array], Array]:
        """The parts of a workspace, a new one where none is given; and what holds their memory.

        Raises:
            ProblemError: it has another type, gaps, or too few bytes; says how many are needed.

        """
        needed = size_of(parts)
        if workspace is None:
            workspace = self.new(Made(shape=(needed,), dtype=DType.U8))
        if self.library is None:
            return _of_numpy(workspace, parts, needed, kernel), workspace
        whole = view(workspace, "workspace", self.stream, self.library)
        _check(whole, needed, kernel)
        return _of_device(whole, parts, workspace), workspace


def _check(whole: DeviceArray, needed: int, kernel: str) -> None:
    check_array(whole, "workspace", "bytes", (DType.U8,), kernel)
    check_contiguous({"workspace": whole}, kernel)
    rule = f"`workspace` must have {needed} bytes, not {whole.size}"
    require(whole.size >= needed, rule, kernel)
    require(not whole.is_read_only, "`workspace` is read-only", kernel)
    rule = f"`workspace` must begin at a multiple of {ALIGN} bytes, not {whole.pointer:#x}"
    require(whole.pointer % ALIGN == 0, rule, kernel)


def _of_device(whole: DeviceArray, parts: Mapping[str, Made], workspace: Array) -> dict[str, Array]:
    found, at = {}, whole.pointer
    for name, part in parts.items():
        shape, dtype, device = part.shape, part.dtype, whole.device
        found[name] = Part(pointer=at, shape=shape, dtype=dtype, device=device, of=workspace)
        at += _room(part)
    return found


def _of_numpy(
    whole: Array, parts: Mapping[str, Made], needed: int, kernel: str
) -> dict[str, Array]:
    rule = f"`workspace` must be {needed} bytes of numpy's uint8, side by side"
    fits = isinstance(whole, np.ndarray) and whole.dtype == np.uint8 and whole.ndim == 1
    require(fits and whole.flags.c_contiguous and whole.size >= needed, rule, kernel)
    require(whole.flags.writeable, "`workspace` is read-only", kernel)
    found, at = {}, 0
    for name, part in parts.items():
        size = part.dtype.bytes_of(prod(part.shape))
        found[name] = whole[at : at + size].view(part.dtype.numpy).reshape(part.shape)
        at += _room(part)
    return found
