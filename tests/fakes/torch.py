"""As much of torch as `frameworks.torch_ops` speaks to, over numpy's memory.

torch itself is too large for the tests that run everywhere; tests/gpu has it.
"""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from kernelpack.formats.dtype import DType
from kernelpack.ops import dlpack

BFLOAT = 4  # DLDataTypeCode


@dataclass(frozen=True)
class Kind:
    """A `torch.dtype`."""

    numpy: np.dtype[Any]


bfloat16, float8_e4m3fn = Kind(DType.BF16.numpy), Kind(DType.E4M3.numpy)
uint8, float32 = Kind(np.dtype(np.uint8)), Kind(np.dtype(np.float32))
int32 = Kind(np.dtype(np.int32))


class Tensor:
    """A tensor of the CPU; an fp8 one has no DLPack, as in an older torch."""

    def __init__(self, values: np.ndarray[Any, Any], device: str = "cpu") -> None:
        self.values, self.device = values, device

    @property
    def shape(self):
        return self.values.shape

    @property
    def dtype(self):
        return Kind(self.values.dtype)

    def new_empty(self, shape, *, dtype):
        return Tensor(np.zeros(shape, dtype.numpy))

    def view(self, kind):
        return Tensor(self.values.view(kind.numpy))

    def detach(self):
        return self

    def __dlpack_device__(self):
        return dlpack.CPU, 0

    def __dlpack__(self, *, stream=None, max_version=None):
        assert stream is None
        if self.dtype != bfloat16:
            return self.values.__dlpack__(max_version=max_version)
        capsule = self.values.view(np.uint16).__dlpack__(max_version=max_version)
        name = dlpack._VERSIONED if max_version else dlpack._UNVERSIONED
        kind = dlpack._Versioned if max_version else dlpack._Managed
        kind.from_address(dlpack._get_pointer(capsule, name)).tensor.code = BFLOAT
        return capsule


@dataclass
class FakeTorch:
    """A torch that has just been imported."""

    schemas: dict[str, str] = field(default_factory=dict)
    run: dict[tuple[str, str], Any] = field(default_factory=dict)
    fakes: dict[str, Any] = field(default_factory=dict)
    bfloat16 = bfloat16
    float8_e4m3fn = float8_e4m3fn
    uint8 = uint8
    int32 = int32
    __hash__ = object.__hash__

    @property
    def library(self):
        return SimpleNamespace(Library=self.definitions, register_fake=self.register_fake)

    def definitions(self, namespace, kind):
        assert (namespace, kind) == ("kernelpack", "FRAGMENT")
        return self

    def define(self, schema):
        name = schema.partition("(")[0]
        assert name not in self.schemas, "torch defines an op once"
        self.schemas[name] = schema

    def impl(self, name, run, backend):
        self.run[name, backend] = run

    def register_fake(self, name, fake, *, lib):
        assert lib is self
        self.fakes[name] = fake

    def call(self, name, *inputs, **given):
        """`torch.ops.kernelpack.<name>` of tensors of the CPU."""
        return self.run[name, "CPU"](*inputs, **given)
