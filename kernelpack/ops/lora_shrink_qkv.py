"""LoRA shrink: tokens times the stacked Q, K, V adapters of their group, into three planes.

    c[p, i, j] = sum over x of a[i, x] * b[adapter of row i, p * n + j, x]

One launch and no wait for the GPU. numpy arrays are computed on the CPU emulator, whatever GPU is
there. See `kernels/lora_shrink_qkv` for what is computed.
"""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.lora_shrink_qkv.problem import (
    ABIS,
    IN_DTYPES,
    INACTIVE,
    KERNEL,
    OUT_DTYPES,
    PLANES,
    Problem,
)
from kernelpack.load.library import Library
from kernelpack.ops.arrays import (
    Array,
    DeviceArray,
    Type,
    dtype_of,
    host_view,
    view,
)
from kernelpack.ops.checks import (
    check_array,
    check_contiguous,
    check_devices,
    check_out,
    integer,
)
from kernelpack.ops.emulated import EmulatedLibrary, emulated, is_for_emulator, loaded
from kernelpack.ops.output import new_output
from kernelpack.ops.prepared import Call, Prepared
from kernelpack.ops.stream import Stream, stream_handle

_INPUTS = {
    "a": ("rows k", IN_DTYPES),
    "b": ("g 3n k", IN_DTYPES),
    "a_offsets": ("n_active+1", (DType.U32, DType.I32)),  # the same bits: none is negative
    "expert_ids": ("n_active", (DType.I32,)),
}
"""Each input's dimensions and types."""


class LoraShrinkQkv:
    """The op. Call it, or `prepare` it once and launch it many times."""

    def __call__(
        self,
        a: Array,
        b: Array,
        a_offsets: Array,
        expert_ids: Array,
        *,
        m: int | None = None,
        out: Array = None,
        out_dtype: Type = None,
        stream: Stream = None,
        library: Library | EmulatedLibrary | None = None,
        debug: bool = False,
    ) -> Array:
        """Run LoRA shrink; returns the output at once, its values follow on the stream.

        Args:
            a: tokens [rows >= m, k], bf16 or fp16; rows from m on are never read.
            b: adapters [g, 3n, k] of a's type; the rows of a plane are adjacent: Q, K, V.
            a_offsets: first row of each group, then m: [n_active + 1], u32 or i32.
            expert_ids: adapter of each group [n_active], i32; -1 gives zero rows.
            m: token rows that adapters cover; without it out's, or all rows of a.
            out: the output [3, m, n], bf16, fp16 or fp32; without it a new `Output` is made.
            out_dtype: the type of a new output; without it a's.
            stream: a handle, or a stream of any framework; without it the legacy default stream.
            library: the kernels to choose from; without it those of the installed bundle.
            debug: read offsets and ids back and check them first; waits for the GPU.

        With numpy arrays the op computes on the emulator, returns when the values are there, and
        makes a numpy array where no output is given; offsets and ids are always checked.

        Raises:
            ProblemError: an argument is not what the list above says.
            SelectionError: the library holds no kernel for this problem and device.
            CaptureError: first use of a kernel, or a new output, while a stream is captured.
            BundleError: on the emulator: the bundle's PTX, X.ptx.kpk, is not beside it.
            EmulationError: on the emulator: the kernel broke a rule.

        """
        inputs = (a, b, a_offsets, expert_ids)
        if is_for_emulator(inputs, library):
            _require(stream is None, "`stream`: the emulator has none")
            return _emulate(emulated(library), inputs, m, out=out, out_dtype=out_dtype)
        handle = stream_handle(stream)
        call = _call(loaded(library), inputs, m, out=out, out_dtype=out_dtype, stream=handle)
        if debug:
            _check_groups(call.sizes, *_groups(call, handle))
        launch = call.pack(handle)
        if launch is not None:
            launch(handle)
        return call.out

    def prepare(
        self,
        a: Array,
        b: Array,
        a_offsets: Array,
        expert_ids: Array,
        *,
        m: int | None = None,
        out: Array = None,
        out_dtype: Type = None,
        stream: Stream = None,
        library: Library | None = None,
    ) -> Prepared:
        """Choose, resolve and pack a launch without starting it; arguments as of the op."""
        handle = stream_handle(stream)
        inputs = (a, b, a_offsets, expert_ids)
        call = _call(loaded(library), inputs, m, out=out, out_dtype=out_dtype, stream=handle)
        return Prepared(call, handle)


lora_shrink_qkv = LoraShrinkQkv()


def _call(
    library: Library,
    inputs: tuple[Array, ...],
    m: int | None,
    *,
    out: Array,
    out_dtype: Type,
    stream: int,
) -> Call:
    """See and check the arrays, make the output if there is none, and choose the kernel."""
    given = dict(zip(_INPUTS, inputs, strict=True))
    views = {name: view(array, name, stream, library) for name, array in given.items()}
    seen_out = None if out is None else view(out, "out", stream, library)
    problem = _problem(views, seen_out, m, out_dtype)
    device = check_devices(views if seen_out is None else {**views, "out": seen_out}, KERNEL)
    if seen_out is None:
        out = new_output(library, (PLANES, problem.m, problem.n), problem.out_dtype, device)
        seen_out = out.view
    variant = None
    if not problem.is_empty:
        library.check_stream(stream, device)
        variant = library.select(KERNEL, problem.sizes, device, ABIS)
    return Call(
        library=library,
        variant=variant,
        sizes=problem.sizes,
        views={**views, "c": seen_out},
        device=device,
        given={**given, "c": out},
        out=out,
    )


def _emulate(
    library: EmulatedLibrary,
    inputs: tuple[Array, ...],
    m: int | None,
    *,
    out: Array,
    out_dtype: Type,
) -> Array:
    """See and check numpy arrays, choose the kernel, and compute on the emulator."""
    arrays = dict(zip(_INPUTS, inputs, strict=True))
    views = {name: host_view(array, name) for name, array in arrays.items()}
    problem = _problem(views, None if out is None else host_view(out, "out"), m, out_dtype)
    if out is None:
        out = np.zeros((PLANES, problem.m, problem.n), problem.out_dtype.numpy)
    if not problem.is_empty:
        _check_groups(problem.sizes, arrays["a_offsets"].tolist(), arrays["expert_ids"].tolist())
        out[...] = library.run(KERNEL, problem.sizes, arrays, ABIS)["c"]
    return out


def _problem(
    views: dict[str, DeviceArray], out: DeviceArray | None, m: int | None, asked: Type
) -> Problem:
    """The sizes of a call, after every rule about its arrays holds."""
    for name, (dims, dtypes) in _INPUTS.items():
        check_array(views[name], name, dims, dtypes, KERNEL)
    out_dtype = None if asked is None else dtype_of(asked)
    if out is not None:
        check_array(out, "out", "3 m n", OUT_DTYPES, KERNEL)
        m = out.shape[1] if m is None else m
    _check_sides(views)
    (rows, k), (g, stacked, _) = views["a"].shape, views["b"].shape
    problem = Problem(
        m=rows if m is None else integer(m, "m", where=KERNEL),
        n=stacked // PLANES,
        k=k,
        g=g,
        n_active=views["expert_ids"].shape[0],
        dtype=views["a"].dtype,
        out_dtype=out_dtype or (views["a"].dtype if out is None else out.dtype),
    )
    problem.check()
    _require(problem.m <= rows, f"`m` must be at most a's {rows} rows, not {problem.m}")
    check_contiguous(views, KERNEL)
    if out is not None:
        check_out(out, (PLANES, problem.m, problem.n), problem.out_dtype, views, KERNEL)
    return problem


def _check_sides(views: Mapping[str, DeviceArray]) -> None:
    """The sides and types that must agree between the inputs."""
    k, dtype = views["a"].shape[1], views["a"].dtype
    _, stacked, b_k = views["b"].shape
    _require(b_k == k, f"`b` must have a's k, {k} columns, not {b_k}")
    _require(stacked % PLANES == 0, f"`b` must have 3n rows an adapter, not {stacked}")
    found = views["b"].dtype
    _require(found == dtype, f"`b` must have a's type {dtype.label}, not {found.label}")
    offsets, groups = views["a_offsets"].shape[0], views["expert_ids"].shape[0]
    _require(
        offsets > groups,
        f"`a_offsets` must have n_active + 1 elements, `expert_ids` n_active, "
        f"not {offsets} and {groups}",
    )


def _groups(call: Call, stream: int) -> tuple[list[int], list[int]]:
    """Read offsets and ids back; waits for the GPU."""
    groups = call.sizes["n_active"]
    offsets = _read(call, "a_offsets", groups + 1, stream)
    return offsets, _read(call, "expert_ids", groups, stream)


def _check_groups(sizes: Mapping[str, int], offsets: list[int], ids: list[int]) -> None:
    """Hold the groups against what the kernel relies on."""
    groups, m, g = sizes["n_active"], sizes["m"], sizes["g"]
    if groups == 0:
        return
    offsets = offsets[: groups + 1]
    _require(offsets[0] == 0, f"`a_offsets` must start with 0, not {offsets[0]}")
    _require(
        offsets[-1] == m,
        f"`a_offsets` must end with m = {m} after the {groups} groups of `expert_ids`, "
        f"not {offsets[-1]}",
    )
    for group, (low, high) in enumerate(pairwise(offsets)):
        _require(low <= high, f"`a_offsets` must not fall: group {group} is {low} to {high}")
    for group, adapter in enumerate(ids):
        _require(
            INACTIVE <= adapter < g,
            f"`expert_ids` must be -1 to {g - 1}, not {adapter} (group {group})",
        )


def _read(call: Call, name: str, count: int, stream: int) -> list[int]:
    array = call.views[name]
    values = np.empty(count if array.size else 0, array.dtype.numpy)
    call.library.read(array.pointer, values, call.device, stream)
    return [int(value) for value in values]


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise ProblemError(rule, where=KERNEL)
