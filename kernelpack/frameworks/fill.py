"""Shared code of the doors: an op fills a framework's outputs, on its stream or on the CPU."""

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.errors import ProblemError
from kernelpack.load.library import Library
from kernelpack.ops import OPS, EmulatedLibrary, dlpack
from kernelpack.ops.arrays import Array, Type
from kernelpack.ops.chain import ChainOp
from kernelpack.ops.op import Op
from kernelpack.ops.operation import Traced
from kernelpack.ops.prepared import Started
from kernelpack.ops.stream import Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Face:
    """An op as the doors see it.

    Attributes:
        call: kernelpack's own.
        inputs: its arguments by position.
        numbers: those of `inputs` that are numbers.
        groups: its inputs by keyword, which may be left out.
        settings: its numbers by keyword, which may be left out.
        flags: its choices by keyword, which are false where they are left out.
        counts: its whole numbers by keyword, which may be left out.
        sizes: the sizes of outputs that are made, by keyword, which may be left out.
        types: likewise their element types.
        outputs: its keywords for outputs.
        spare: those of `outputs` that a caller need not want.
        traced: the outputs of tensors without values; None where all outputs are given.
        start: as `call`, and says what was started.

    """

    call: Callable[..., object]
    inputs: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ("out",)
    spare: tuple[str, ...] = ()
    traced: Callable[..., Traced] | None = None
    start: Callable[..., Started] | None = None


def face_of(op: Op[..., Any] | ChainOp[..., Any]) -> Face:
    """An op's face, read from its description and its signature."""
    operation = op.operation
    outputs = {operation.word(name): name for name in operation.outputs}
    listed = [p for p in signature(op.tensors).parameters.values() if p.name not in _OF_A_LAUNCH]
    inputs = [p for p in listed if p.kind is p.POSITIONAL_OR_KEYWORD]
    given = [p for p in listed if p.kind is p.KEYWORD_ONLY and p.name not in outputs]
    by_kind = {kind: tuple(p.name for p in given if p.annotation == kind) for kind in _KINDS}
    return Face(
        call=op.fill,
        start=op.start,
        inputs=tuple(p.name for p in inputs),
        numbers=tuple(p.name for p in inputs if p.annotation is float),
        groups=by_kind[Array],
        settings=by_kind[float],
        flags=by_kind[bool],
        counts=by_kind[int],
        sizes=by_kind[int | None],
        types=by_kind[Type],
        outputs=tuple(outputs),
        spare=tuple(word for word, name in outputs.items() if name in operation.optional),
        traced=operation.traced,
    )


_OF_A_LAUNCH = ("stream", "library", "debug")
"""Arguments that a framework does not know: where and how any op runs."""

_KINDS = (Array, float, bool, int, int | None, Type)
"""The kind of an op's keyword."""

FACES = {name: face_of(op) for name, op in OPS.items()}
"""By the op's name."""


def fill(
    face: Face,
    arrays: Mapping[str, Array],
    *,
    stream: Callable[[], Stream],
    library: Library | EmulatedLibrary | None,
) -> None:
    """Have an op fill its outputs.

    Args:
        face: the op.
        arrays: every input and output by name, of anything that speaks DLPack; on a GPU, or all
            on the CPU, where the emulator computes. Numbers go as they are.
        stream: gives the framework's current stream; not asked for the CPU.
        library: the kernels to choose from; None: those that are installed.

    Raises:
        KernelpackError: as of the op.

    """
    given = {name: array for name, array in arrays.items() if array is not None}
    on_cpu = an_output(face, given).__dlpack_device__()[0] == dlpack.CPU
    if on_cpu:
        given = {name: _on_cpu(value, name) for name, value in given.items()}
    inputs = [given.pop(name) for name in face.inputs]
    face.call(*inputs, **given, stream=None if on_cpu else stream(), library=library)


def an_output(face: Face, given: Mapping[str, Array]) -> Array:
    """The first output that is given, which lies where the call runs.

    Raises:
        ProblemError: there is none.

    """
    for word in face.outputs:
        if given.get(word) is not None:
            return given[word]
    raise ProblemError(f"give an output: {' or '.join(face.outputs)}")


def _on_cpu(value: Array, name: str) -> Array:
    return value if isinstance(value, int | float) else host_array(value, name)


def host_array(array: Array, name: str) -> NDArray[Any]:
    """Memory of the CPU as a numpy array; nothing is copied, and `array` must outlive it.

    numpy's own `from_dlpack` knows neither bf16 nor fp8.

    Raises:
        ProblemError: it lies elsewhere, or its element type is unknown; names the argument.

    """
    seen = dlpack.read(dlpack.export(array, None))
    if seen.device_type != dlpack.CPU or seen.dtype is None:
        what = "is not on the CPU like the others" if seen.dtype else "has an unknown element type"
        raise ProblemError(f"`{name}` {what}")
    dtype = seen.dtype.numpy
    steps = seen.strides or dlpack.row_major(seen.shape)
    reach = sum((side - 1) * step for side, step in zip(seen.shape, steps, strict=True)) + 1
    size = dtype.itemsize * reach if all(seen.shape) else 0
    memory = memoryview((ctypes.c_uint8 * size).from_address(seen.address))
    strides = [dtype.itemsize * step for step in steps]
    found: NDArray[Any] = np.ndarray(seen.shape, dtype, memory, strides=strides)
    found.flags.writeable = not seen.is_read_only
    return found
