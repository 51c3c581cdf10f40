"""Arrays of any framework as one kind of view: address, shape, type, strides, device.

Taken, in this order: a `DeviceArray`, DLPack (torch, cupy, jax), `__cuda_array_interface__`
(cupy, numba, torch). No framework is imported. The framework makes its array ready for the stream
that the op runs on (DLPack's and the interface's stream rules); whoever uses the output on another
stream orders that one itself. numpy arrays are for the emulator (`host_view`); an array in host
memory beside one on a GPU is refused by name.
"""

import ctypes
import sys
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol

import numpy as np

from kernelpack.errors import KernelpackError, ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.ops import dlpack
from kernelpack.ops.dlpack import row_major
from kernelpack.ops.interface import in_elements, parse
from kernelpack.ops.stream import LEGACY

Array = Any
"""An array of any framework."""

Type = Annotated[Any, "element type"]
"""An element type: kernelpack's, its name, or that of any framework."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceArray:
    """An array in device memory, by its numbers: for raw pointers, and what views become.

    Attributes:
        pointer: device address of the first element, bytes.
        shape: elements along each dimension.
        dtype: element type.
        strides: elements from one to the next along each dimension; None: row-major, no gaps.
        device: the device's ordinal; None: ask the driver whose memory it is.
        is_read_only: whether it may not be an output.

    """

    pointer: int
    shape: tuple[int, ...]
    dtype: DType
    strides: tuple[int, ...] | None = None
    device: int | None = None
    is_read_only: bool = False

    @property
    def size(self) -> int:
        """How many elements there are."""
        count = 1
        for side in self.shape:
            count *= side
        return count

    @property
    def bytes(self) -> range:
        """The addresses of its elements, where they lie without gaps."""
        return range(self.pointer, self.pointer + self.size * self.dtype.bits // 8)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie row-major without gaps."""
        if self.strides is None or self.size == 0:
            return True
        wanted = row_major(self.shape)
        sides = zip(self.shape, self.strides, wanted, strict=True)
        return all(side == 1 or stride == step for side, stride, step in sides)


class Locator(Protocol):
    """The questions of a view to a library."""

    def pointer_device(self, address: int) -> int | None:
        """The device whose memory an address lies in."""

    def order(self, stream: int, producer: int, device: int) -> None:
        """Let `stream` wait for `producer`."""


def view(array: Array, name: str, stream: int, locator: Locator) -> DeviceArray:
    """See an array of any framework, ready for work on `stream`.

    Args:
        array: what the caller gave.
        name: the argument's name, for errors.
        stream: the handle of the stream that will use it.
        locator: the library, which knows the driver.

    Raises:
        ProblemError: it is not an array, is in host memory, or has a type kernelpack lacks.

    """
    if isinstance(array, DeviceArray):
        seen = array
    elif hasattr(array, "__dlpack__"):
        seen = _from_dlpack(array, name, stream)
    elif hasattr(array, "__cuda_array_interface__"):
        seen = _from_interface(array.__cuda_array_interface__, name, stream, locator)
    else:
        raise ProblemError(
            f"`{name}` is a {type(array).__name__}, not an array",
            hint="give an array with DLPack or __cuda_array_interface__, or a DeviceArray",
        )
    return _placed(check_numbers(seen, name), name, locator)


_ADDRESSES = range(1, 1 << 64)


def check_numbers(array: DeviceArray, name: str) -> DeviceArray:
    """The array, if its numbers can be those of one.

    Raises:
        ProblemError: it has elements at no address, or strides of other sides; names it.

    """
    if array.strides is not None and len(array.strides) != len(array.shape):
        rule = f"`{name}` must have a stride of each of its {len(array.shape)} sides"
        raise ProblemError(f"{rule}, not {list(array.strides)}")
    if min(array.shape, default=0) < 0:
        raise ProblemError(f"`{name}` must have sides of at least 0, not {list(array.shape)}")
    if array.size and array.pointer not in _ADDRESSES:
        raise ProblemError(f"`{name}` has {array.size} elements at {array.pointer:#x}, no address")
    return array


def _placed(array: DeviceArray, name: str, locator: Locator) -> DeviceArray:
    """The array with its device known; one of no elements may lie nowhere."""
    if array.device is not None or array.size == 0:
        return array
    device = locator.pointer_device(array.pointer)
    if device is None:
        raise ProblemError(f"`{name}`: {array.pointer:#x} is not an address of device memory")
    return replace(array, device=device)


_OF_TORCH = {"torch.float8_e4m3fn": DType.E4M3, "torch.float8_e5m2": DType.E5M2}
"""Types of one byte that few releases of torch export: their tensors are exported as bytes."""


def _from_dlpack(array: Array, name: str, stream: int) -> DeviceArray:
    known = _OF_TORCH.get(str(getattr(array, "dtype", "")))
    try:
        kind, _ = array.__dlpack_device__()
        if int(kind) not in (dlpack.CUDA, dlpack.CUDA_MANAGED):
            raise _in_host_memory(array, name)
        exported = array if known is None else array.view(sys.modules["torch"].uint8)
        capsule = dlpack.export(exported, stream or LEGACY)
        tensor = dlpack.read(capsule)
    except (BufferError, RuntimeError, ValueError) as error:  # a framework's own refusals
        hint = "a tensor that needs a gradient is given as `tensor.detach()`"
        raise ProblemError(f"`{name}` cannot be shared: {error}", hint=hint) from error
    dtype = known or tensor.dtype
    if dtype is None:
        raise ProblemError(f"`{name}` has an element type that kernelpack does not know")
    return DeviceArray(
        pointer=tensor.address,
        shape=tensor.shape,
        dtype=dtype,
        strides=tensor.strides,
        device=tensor.device,
        is_read_only=tensor.is_read_only,
    )


def _in_host_memory(array: object, name: str) -> ProblemError:
    return ProblemError(
        f"`{name}` is a {type(array).__module__}.{type(array).__name__} in host memory",
        hint="copy it to the GPU; or call the op with numpy arrays alone, for the CPU emulator",
    )


_OF_NUMPY = {dtype.numpy: dtype for dtype in reversed(DType)}
"""The type of a numpy array; of two that look alike in numpy, the first."""


def host_view(array: Array, name: str) -> DeviceArray:
    """See a numpy array, for the emulator; its pointer is an address of this process.

    Raises:
        ProblemError: it is not a numpy array, or has a type kernelpack lacks.

    """
    if not isinstance(array, np.ndarray):
        raise ProblemError(
            f"`{name}` is a {type(array).__name__} among numpy arrays",
            hint="give numpy arrays alone, for the CPU emulator, or arrays on a GPU alone",
        )
    dtype = _OF_NUMPY.get(array.dtype)
    if dtype is None:
        rule = f"`{name}` has the element type {array.dtype}, which kernelpack does not know"
        raise ProblemError(rule)
    return DeviceArray(
        pointer=array.ctypes.data,
        shape=array.shape,
        dtype=dtype,
        strides=in_elements(array.strides, dtype, name) if array.size else None,
        is_read_only=not array.flags.writeable,
    )


def host_array(view: DeviceArray) -> np.ndarray[Any, Any]:
    """The numpy array of a view in host memory without gaps; what it looks at must outlive it."""
    size = view.dtype.bytes_of(view.size)
    memory = memoryview((ctypes.c_uint8 * size).from_address(view.pointer if size else 0))
    return np.ndarray(view.shape, view.dtype.numpy, memory)


def _from_interface(interface: object, name: str, stream: int, locator: Locator) -> DeviceArray:
    """An array's interface, its data ordered before the next work of `stream`."""
    seen = parse(interface, name)
    array = DeviceArray(
        pointer=seen.pointer,
        shape=seen.shape,
        dtype=seen.dtype,
        strides=seen.strides,
        is_read_only=seen.is_read_only,
    )
    placed = _placed(check_numbers(array, name), name, locator)
    producer = seen.stream
    if producer is not None and producer != (stream or LEGACY) and placed.device is not None:
        locator.order(stream, producer, placed.device)
    return placed


_WORDS = {dtype.numpy.name: dtype.label for dtype in reversed(DType)} | {"half": "fp16"}
"""Our words of types by those of numpy and torch, such as `float32`; of two alike, the first's."""


def dtype_of(dtype: Type) -> DType:
    """A data type from its name (`bf16`, `bfloat16`), or from torch's, numpy's or ml_dtypes'.

    Raises:
        ProblemError: it is not an element type; names the nearest.

    """
    if isinstance(dtype, DType):
        return dtype
    try:
        word = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    except (TypeError, ValueError):
        word = str(dtype)
    word = word.removeprefix("torch.")
    try:
        return DType.parse(_WORDS.get(word, word))
    except KernelpackError as error:
        raise ProblemError(error.what, where="`out_dtype`", hint=error.hint) from None
