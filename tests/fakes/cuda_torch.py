"""As much of torch with a GPU as ops speak to in calls of its tensors; the GPU is pretended.

There is one, as there is of the real one. Its tensors are read by attributes, by DLPack, and by
DLPack's C exchange API, whose table is made of Python functions.
"""

import ctypes
from math import prod
from types import SimpleNamespace
from typing import Any

from kernelpack.formats.dtype import DType
from kernelpack.ops import dlpack
from tests.fakes.driver import FakeCuda

KINDS = {"bfloat16": DType.BF16, "float32": DType.FP32, "int32": DType.I32, "uint8": DType.U8}
_CODES = {dtype: pair for pair, dtype in reversed(dlpack.DTYPES.items())}


class Kind(str):
    """A `torch.dtype`."""

    __slots__ = ()


class Tensor:
    """A tensor of device 0."""

    cuda: FakeCuda
    kind = dlpack.CUDA
    device = SimpleNamespace(type="cuda", index=0)

    def __init__(self, shape: tuple[int, ...], kind: str = "bfloat16", address: int = 0) -> None:
        self.shape, self.dtype, self.requires_grad = tuple(shape), kind, False
        size = KINDS[kind].bytes_of(max(1, prod(shape)))
        self.address = address or self.cuda.new_memory(size)

    def get_device(self) -> int:
        return 0 if self.kind == dlpack.CUDA else -1

    def detach(self) -> "Tensor":
        return Tensor(self.shape, self.dtype, address=self.address)

    def stride(self) -> tuple[int, ...]:
        return dlpack.row_major(self.shape)

    def data_ptr(self) -> int:
        return self.address

    def expand(self, shape: tuple[int, ...]) -> "Tensor":
        return Tensor(shape, self.dtype, address=self.address)

    def untyped_storage(self) -> SimpleNamespace:
        return SimpleNamespace(resize_=self._resize)

    def _resize(self, size: int) -> None:
        assert size == 0, "memory is given back, no more"
        del self.cuda.memory[self.address]
        self.address = 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0

    def __dlpack__(self, *, stream: int, max_version: object = None) -> object:
        if self.requires_grad:
            raise BufferError("it requires a gradient")
        kind, shape = KINDS[self.dtype], self.shape
        return dlpack.share(self.address, shape, kind, 0, owner=self, version=1)


Tensor.__module__, Tensor.__qualname__ = "torch", "Tensor"

torch = SimpleNamespace(
    current=0,
    Tensor=Tensor,
    dtype=Kind,
    contiguous_format=0,
    empty=lambda shape, *, dtype, device: Tensor(shape, dtype),
    empty_like=lambda pattern, *, memory_format: Tensor(pattern.shape, pattern.dtype),
    **{name: Kind(name) for name in KINDS},
)
torch._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda _: torch.current)


def pretend(cuda: FakeCuda) -> Any:
    """The torch whose tensors lie on a GPU, to be in `sys.modules`.

    `torch.current` is the handle of its current stream.
    """
    Tensor.cuda, torch.current = cuda, 0
    return torch


# --- the C exchange API ---

_READ = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(dlpack._Tensor))
_CURRENT = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)


@_READ
def _read(tensor: Tensor, out: Any) -> int:
    sides = (ctypes.c_int64 * len(tensor.shape))(*tensor.shape)
    tensor.kept = sides  # type: ignore[attr-defined] # alive until control is returned
    code, bits = _CODES[KINDS[tensor.dtype]]
    found = out.contents
    found.data, found.device_type, found.device_id = tensor.address, tensor.kind, 0
    found.rank, found.code, found.bits, found.lanes = len(sides), code, bits, 1
    found.shape = ctypes.cast(sides, ctypes.POINTER(ctypes.c_int64))
    found.strides, found.byte_offset = None, 0
    return 0


@_CURRENT
def _current(_type: int, _device: int, out: Any) -> int:
    out[0] = torch.current
    return 0


class _Exchange(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("unused", ctypes.c_void_p * 4),
        ("read", _READ),
        ("current", _CURRENT),
    )


_EXCHANGE = _Exchange(version=(1, 3), read=_read, current=_current)
_NAME = ctypes.create_string_buffer(b"dlpack_exchange_api")  # a capsule keeps no copy
Tensor.__dlpack_c_exchange_api__ = dlpack._new_capsule(  # type: ignore[attr-defined]
    ctypes.addressof(_EXCHANGE), ctypes.cast(_NAME, ctypes.c_char_p), None
)
