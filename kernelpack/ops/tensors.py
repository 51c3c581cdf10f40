"""New outputs of calls with torch's tensors: by torch's allocator, whose pools are per stream."""

import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from kernelpack.formats.dtype import DType
from kernelpack.ops.stream import LEGACY

Tensor = Any
Type = Any
"""A tensor, and its element type: torch is not there where types are checked."""

NAMES = {
    DType.BF16: "bfloat16",
    DType.FP16: "float16",
    DType.FP32: "float32",
    DType.FP64: "float64",
    DType.E4M3: "float8_e4m3fn",
    DType.E5M2: "float8_e5m2",
    DType.U8: "uint8",
    DType.I8: "int8",
    DType.I16: "int16",
    DType.I32: "int32",
    DType.I64: "int64",
}
"""torch's names of the types that an output may have; others are an `Output`."""

_CLASSES = frozenset({("torch", "Tensor"), ("torch.nn.parameter", "Parameter")})


def raw_stream(torch: Any) -> Callable[[int], int]:  # noqa: ANN401 - not there for types
    """The function for the handle of torch's current stream on a device, by its ordinal."""
    inner = getattr(torch, "_C", None)  # what Triton asks too; the public way costs 2 us
    found: Callable[[int], int] | None = getattr(inner, "_cuda_getCurrentRawStream", None)
    return found or (lambda ordinal: int(torch.cuda.current_stream(ordinal).cuda_stream))


def first_tensor(arrays: Iterable[object]) -> Tensor | None:
    """The first of some arrays that is torch's own, on a GPU."""
    for array in arrays:
        kind = type(array)
        if (kind.__module__, kind.__qualname__) in _CLASSES:
            found: Tensor = array
            return found if found.device.type == "cuda" else None
    return None


def kind_of(dtype: DType) -> Type:
    """Torch's word for an element type."""
    return getattr(sys.modules["torch"], NAMES[dtype])


def pattern(like: Tensor, shape: tuple[int, ...], kind: Type) -> Tensor:
    """A tensor without memory that looks like one of a shape, to make others like it.

    What lived on in the pool of a CUDA graph, `torch.compile` would take for a leak.
    """
    one = sys.modules["torch"].empty((), dtype=kind, device=like.device)
    found = one.expand(shape)
    found.untyped_storage().resize_(0)
    return found


def tensor_maker(pattern: Tensor) -> Callable[[], Tensor]:
    """The function that makes tensors like a pattern, on torch's current stream."""
    torch = sys.modules["torch"]
    return partial(torch.empty_like, pattern, memory_format=torch.contiguous_format)


def new_tensor(pattern: Tensor, stream: int) -> Tensor:
    """A tensor like a pattern, of memory that work on `stream` may use at once."""
    torch = sys.modules["torch"]
    make, device = tensor_maker(pattern), pattern.get_device()
    if (raw_stream(torch)(device) or LEGACY) == (stream or LEGACY):
        return make()
    cuda = torch.cuda
    others = cuda.ExternalStream(stream, device) if stream > LEGACY else cuda.default_stream(device)
    with cuda.stream(others):
        return make()
