"""The facts of each argument that a call depends on, and its address: a fast read.

torch's and cupy's arrays say in their own attributes what DLPack's way says, in a tenth of the time
(`ops.arrays` has that way, and every rule). Arrays of others are not read here.
"""

import sys
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, fields
from functools import partial
from operator import attrgetter
from typing import Any

from kernelpack.formats.dtype import DType
from kernelpack.kv import Continuous, Operand, Padded, Paged, Ragged
from kernelpack.ops import native
from kernelpack.ops.arrays import Array, DeviceArray
from kernelpack.ops.output import Output
from kernelpack.ops.tensors import raw_stream

Stream = Callable[[int], int]
"""From a device's ordinal to the handle of the stream that a framework works on there."""


@dataclass(slots=True)
class Facts:
    """The facts of a call's arguments.

    Attributes:
        key: equal for two calls only if they differ in nothing but where their arrays lie.
        arrays: those of a caller, operands' among them, in order.
        pointers: the device address of each.
        stream: of the framework whose arrays these are; None: nobody's.
        device: where those lie.

    """

    key: Any
    arrays: list[Array] = field(default_factory=list)
    pointers: list[int] = field(default_factory=list)
    stream: Stream | None = None
    device: int = 0

    def read(self, values: Iterable[Any]) -> bool:
        """Read arguments; whether all of them are of a known kind."""
        key, tensors = self.key, _TORCH.tensors
        for value in values:
            kind = value.__class__
            if kind in tensors:  # here, as a function's call costs a third of the reading
                device = value.get_device()  # -1 of the CPU, where no call comes to be remembered
                key += (value.dtype, value.shape, value.stride(), device, value.requires_grad)
                self.arrays.append(value)
                self.pointers.append(value.data_ptr())
                self.stream, self.device = _TORCH.stream, device
                continue
            if kind in _PLAIN:
                key += (kind, value)
                continue
            if kind is float:
                key.append(value.hex())  # 0.0 is no -0.0
                continue
            reader = _READERS.get(kind) or _reader(kind)
            if reader is None or not reader(self, value):
                return False
        return True


@dataclass(slots=True)
class _Torch:
    """torch's classes of tensors that were seen, and its streams."""

    tensors: set[type] = field(default_factory=set)
    stream: Stream | None = None


_TORCH = _Torch()
_PLAIN = frozenset({type(None), bool, int, str, DType})


def _device_array(facts: Facts, value: DeviceArray) -> bool:
    """One without a device is looked for by the driver, at every call."""
    device = value.device
    facts.key += (DeviceArray, value.dtype, value.shape, value.strides, device, value.is_read_only)
    facts.arrays.append(value)
    facts.pointers.append(value.pointer)
    return device is not None


def _output(facts: Facts, value: Output) -> bool:
    memory = value.memory
    facts.key += (Output, value.dtype, value.shape, memory.device)
    facts.arrays.append(value)
    facts.pointers.append(memory.address)
    return True


def _operand(members: Callable[[Any], tuple[Any, ...]], facts: Facts, value: Operand) -> bool:
    facts.key.append(type(value))
    return facts.read(members(value))


MEMBERS = {
    kind: attrgetter(*(member.name for member in fields(kind)))
    for kind in (Paged, Continuous, Padded, Ragged)
}
"""From an operand to what it holds."""

Reader = Callable[[Facts, Any], bool]
_READERS: dict[type, Reader | None] = {
    DeviceArray: _device_array,
    Output: _output,
    **{kind: partial(_operand, members) for kind, members in MEMBERS.items()},
}
"""Of each type how it is read; None: not here. Frameworks' types come when they are first seen."""

native.learn_plain(DType)
for _kind, _members in MEMBERS.items():
    native.learn_operand(_kind, _members)


def _reader(kind: type) -> Reader | None:
    """How a type is read that was not seen before."""
    if kind not in _READERS:
        found = _OF_FRAMEWORKS.get((kind.__module__, kind.__qualname__))
        package = kind.__module__.partition(".")[0]
        _READERS[kind] = found and found(sys.modules[package], kind)
    return _READERS[kind]


def _reads_torch(torch: Any, kind: type) -> Reader:  # noqa: ANN401 - not there for types
    """How torch's tensors are read; one that asks for a gradient is another one."""
    _TORCH.tensors.add(kind)
    _TORCH.stream = raw_stream(torch)
    native.learn_tensor(kind)
    native.learn_plain(torch.dtype)
    return lambda facts, value: facts.read((value,))


def _reads_torch_type(_torch: object, _kind: type) -> Reader:
    def read(facts: Facts, value: Hashable) -> bool:
        facts.key.append(value)
        return True

    return read


def _reads_cupy(cupy: Any, _kind: type) -> Reader:  # noqa: ANN401 - not there for types
    """How cupy's arrays are read."""

    def read(facts: Facts, value: Any) -> bool:  # noqa: ANN401
        memory = value.data
        facts.key += (value.dtype, value.shape, value.strides, memory.device_id)
        facts.arrays.append(value)
        facts.pointers.append(memory.ptr)
        facts.stream = lambda _: int(cupy.cuda.get_current_stream().ptr)
        return True

    return read


_OF_FRAMEWORKS = {
    ("torch", "Tensor"): _reads_torch,
    ("torch.nn.parameter", "Parameter"): _reads_torch,
    ("torch", "dtype"): _reads_torch_type,
    ("cupy", "ndarray"): _reads_cupy,
}
