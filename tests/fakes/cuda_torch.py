"""As much of torch with a GPU as ops speak to in calls of its tensors; the GPU is pretended."""

from types import SimpleNamespace
from typing import Any

from kernelpack.formats.dtype import DType
from kernelpack.ops import dlpack
from tests.fakes.driver import FakeCuda

KINDS = {"bfloat16": DType.BF16, "float32": DType.FP32, "int32": DType.I32, "uint8": DType.U8}


def pretend(cuda: FakeCuda) -> tuple[SimpleNamespace, type]:  # noqa: C901 - a class of its own
    """A torch whose tensors lie on the GPU, to stand in `sys.modules`; and its class of tensors.

    `torch.current` is the handle of its current stream.
    """

    class Tensor:
        """A tensor of device 0."""

        device = SimpleNamespace(type="cuda", index=0)

        def __init__(self, shape: tuple[int, ...], kind: str = "bfloat16", **facts: Any) -> None:
            self.shape, self.dtype, self.requires_grad = tuple(shape), kind, False
            size = KINDS[kind].bytes_of(max(1, _count(shape)))
            self.address = facts.get("address") or cuda.new_memory(size)

        def get_device(self) -> int:
            return 0

        def stride(self) -> tuple[int, ...]:
            return dlpack.row_major(self.shape)

        def data_ptr(self) -> int:
            return self.address

        def expand(self, shape: tuple[int, ...]) -> "Tensor":
            return Tensor(shape, self.dtype, address=self.address)

        def __dlpack_device__(self) -> tuple[int, int]:
            return dlpack.CUDA, 0

        def __dlpack__(self, *, stream: int, max_version: object = None) -> object:
            if self.requires_grad:
                raise BufferError("it requires a gradient")
            kind, shape = KINDS[self.dtype], self.shape
            return dlpack.share(self.address, shape, kind, 0, owner=self, version=1)

    Tensor.__module__, Tensor.__qualname__ = "torch", "Tensor"

    def empty(shape: tuple[int, ...], *, dtype: str, device: object) -> Tensor:
        return Tensor(shape, dtype)

    def empty_like(pattern: Tensor, *, memory_format: object) -> Tensor:
        return Tensor(pattern.shape, pattern.dtype)

    torch = SimpleNamespace(current=0, empty=empty, empty_like=empty_like, contiguous_format=0)
    torch._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda _: torch.current)
    torch.__dict__.update({kind: kind for kind in KINDS})
    return torch, Tensor


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for side in shape:
        count *= side
    return count
