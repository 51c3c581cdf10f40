"""What the doors share: an op fills outputs that a framework made, on its stream or on the CPU."""

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack import ops
from kernelpack.errors import ProblemError
from kernelpack.kv import Paged, Ragged
from kernelpack.load.library import Library
from kernelpack.ops import EmulatedLibrary, dlpack
from kernelpack.ops.arrays import Array
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
        outputs: its keywords for outputs.
        spare: those of `outputs` that a caller need not want.

    """

    call: Callable[..., object]
    inputs: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ("out",)
    spare: tuple[str, ...] = ()


def _sparse_mla_prefill(
    q: Array,
    kv: Array,
    indices: Array,
    scale: float,
    *,
    kv_scales: Array = None,
    topk_lengths: Array = None,
    sink: Array = None,
    dead_lse: float = inf,
    out: Array = None,
    lse: Array = None,
    max_logits: Array = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
) -> object:
    """The op, its operand from tensors: rows alone [rows, row], or blocks [blocks, page, .., row].

    The first row of each block names it, so FlashMLA's [rows, 1, d] is as good as rows alone.
    """
    return ops.sparse_mla_prefill(
        q,
        _cache(kv, kv_scales),
        indices,
        scale,
        topk_lengths=topk_lengths,
        sink=sink,
        dead_lse=dead_lse,
        out=out,
        lse=lse,
        max_logits=max_logits,
        stream=stream,
        library=library,
    )


def _cache(kv: Array, scales: Array, table: Array = None, lengths: Array = None) -> Paged | Ragged:
    """An operand from tensors: rows alone [rows, row], or blocks [blocks, page, .., row]."""
    if len(kv.shape) == len(("rows", "row")):
        return Ragged(kv, scales=scales)
    return Paged(kv, scales=scales, table=table, lengths=lengths)


def _kv_cache_append(
    latent: Array,
    *,
    rope: Array = None,
    slots: Array = None,
    row_offsets: Array = None,
    table: Array = None,
    lengths: Array = None,
    power_of_two: bool = False,
    kv: Array,
    kv_scales: Array = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
) -> None:
    """The op, which writes the cache that it is given."""
    ops.kv_cache_append(
        latent,
        rope,
        _cache(kv, kv_scales, table, lengths),
        slots=slots,
        row_offsets=row_offsets,
        power_of_two=power_of_two,
        stream=stream,
        library=library,
    )


def _kv_remap_indices(
    indices: Array,
    kv: Array,
    table: Array,
    *,
    token_sequences: Array = None,
    out: Array = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
) -> object:
    """The op, of blocks [blocks, page, .., row] and their table."""
    return ops.kv_remap_indices(
        indices,
        Paged(kv, table=table),
        token_sequences=token_sequences,
        out=out,
        stream=stream,
        library=library,
    )


FACES = {
    "kv_cache_append": Face(
        call=_kv_cache_append,
        inputs=("latent",),
        groups=("rope", "slots", "row_offsets", "table", "lengths"),
        flags=("power_of_two",),
        outputs=("kv", "kv_scales"),
        spare=("kv_scales",),
    ),
    "kv_remap_indices": Face(
        call=_kv_remap_indices,
        inputs=("indices", "kv", "table"),
        groups=("token_sequences",),
    ),
    "lora_shrink_qkv": Face(call=ops.lora_shrink_qkv, inputs=("a", "b", "a_offsets", "expert_ids")),
    "nvfp4_grouped_gemm": Face(
        call=ops.nvfp4_grouped_gemm,
        inputs=(
            *("a", "b", "a_scales", "b_scales", "group_offsets", "group_scale_offsets"),
            *("expert_ids", "expert_scales"),
        ),
    ),
    "nvfp4_w4a16_grouped_gemm": Face(
        call=ops.nvfp4_w4a16_grouped_gemm,
        inputs=("a", "b", "b_scales", "group_offsets", "expert_ids", "expert_scales"),
    ),
    "nvfp4_quantize": Face(
        call=ops.nvfp4_quantize,
        inputs=("x", "tensor_scales"),
        groups=("row_offsets", "scale_offsets", "expert_ids"),
        outputs=("codes", "scales"),
    ),
    "sparse_mla_prefill": Face(
        call=_sparse_mla_prefill,
        inputs=("q", "kv", "indices", "scale"),
        numbers=("scale",),
        groups=("kv_scales", "topk_lengths", "sink"),
        settings=("dead_lse",),
        outputs=("out", "lse", "max_logits"),
        spare=("lse", "max_logits"),
    ),
}
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
        stream: tells the framework's current stream; not asked for the CPU.
        library: the kernels to choose from; None: those that are installed.

    Raises:
        KernelpackError: as of the op.

    """
    given = {name: array for name, array in arrays.items() if array is not None}
    on_cpu = given[face.outputs[0]].__dlpack_device__()[0] == dlpack.CPU
    if on_cpu:
        given = {name: _on_cpu(value, name) for name, value in given.items()}
    inputs = [given.pop(name) for name in face.inputs]
    face.call(*inputs, **given, stream=None if on_cpu else stream(), library=library)


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
