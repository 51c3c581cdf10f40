"""An output that an op made: device memory with a shape, which any framework can take over."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from kernelpack.formats.dtype import DType
from kernelpack.load.library import Library, Memory
from kernelpack.ops import dlpack
from kernelpack.ops.arrays import Array, DeviceArray
from kernelpack.ops.tensors import NAMES, first_tensor, kind_of, new_tensor, pattern


class Output:
    """An array in device memory, freed when nobody refers to it.

    It speaks DLPack and `__cuda_array_interface__`: `torch.from_dlpack(output)`,
    `cupy.from_dlpack(output)`. Its values are there once the stream of the op has done its work.

    Attributes:
        shape: elements along each dimension.
        dtype: element type.
        device: the device's ordinal.

    """

    def __init__(self, memory: Memory, shape: tuple[int, ...], dtype: DType) -> None:
        self.memory, self.shape, self.dtype = memory, shape, dtype

    @property
    def device(self) -> int:
        """The ordinal of the device it lies on."""
        return self.memory.device

    @property
    def view(self) -> DeviceArray:
        """Its numbers."""
        return DeviceArray(
            pointer=self.memory.address, shape=self.shape, dtype=self.dtype, device=self.device
        )

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """CUDA array interface, version 3, without a stream: the user orders streams."""
        return {
            "shape": self.shape,
            "typestr": self.dtype.numpy.str,
            "data": (self.memory.address, False),
            "strides": None,
            "version": 3,
            "stream": None,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self.device

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A capsule that shares the memory and keeps it alive.

        The streams are the user's to order, so `stream` is not used.

        Raises:
            BufferError: another device or a copy is asked for.

        """
        del stream
        if dl_device not in (None, self.__dlpack_device__()) or copy:
            raise BufferError("an output is shared as it is, on its own device")
        return dlpack.share(
            self.memory.address,
            self.shape,
            self.dtype,
            self.device,
            owner=self.memory,
            version=min(1, max_version[0]) if max_version else 0,
        )


def new_output(library: Library, shape: tuple[int, ...], dtype: DType, device: int) -> Output:
    """An output of its own memory; the values are not set."""
    count = 1
    for side in shape:
        count *= side
    return Output(library.memory(dtype.bytes_of(count), device), shape, dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Where a call's new outputs lie.

    Attributes:
        library: whose kernel will write them.
        device: the device's ordinal.
        stream: the handle of the stream that the kernel runs on.
        arrays: the inputs. Where one is a tensor of torch's, so are the outputs.

    """

    library: Library
    device: int
    stream: int
    arrays: Collection[Array]

    def new(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """An output as the caller of an op gets it; the values are not set.

        Raises:
            CaptureError: the stream is being captured.

        """
        tensor = first_tensor(self.arrays) if dtype in NAMES else None
        if tensor is None:
            return new_output(self.library, shape, dtype, self.device)
        self.library.check_allocation(self.stream, self.device)
        return new_tensor(pattern(tensor, shape, kind_of(dtype)), self.stream)


def address_of(array: Array) -> int:
    """The device address of what `Beside.new` made."""
    return array.memory.address if isinstance(array, Output) else int(array.data_ptr())


def made_view(array: Array, dtype: DType, device: int) -> DeviceArray:
    """The numbers of what `Beside.new` made."""
    shape = tuple(array.shape)
    return DeviceArray(pointer=address_of(array), shape=shape, dtype=dtype, device=device)
