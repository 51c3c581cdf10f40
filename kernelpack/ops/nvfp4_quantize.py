"""The NVFP4 quantiser: 16-bit rows to codes of 4 bits and a scale for each 16 of them.

    x[i, j] ≈ code[i, j] * scale[i, j // 16] / tensor_scale

It makes the tokens of the grouped GEMMs, with their scales where those read them. One launch and
no wait for the GPU. numpy arrays are computed on the CPU emulator, whatever GPU is there. See
`kernels/nvfp4_quantize/reference` for what is computed, to the bit, and `formats/grouped_scales`
for how scales are laid out.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.formats.scale_layout import ROWS
from kernelpack.kernels.nvfp4_quantize.problem import ABIS, IN_DTYPES, KERNEL, Problem
from kernelpack.load.library import Library
from kernelpack.ops import nvfp4
from kernelpack.ops.arrays import Array
from kernelpack.ops.checks import require
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.ops.groups import OFFSETS, check_ids, check_lengths, check_offsets
from kernelpack.ops.op import op
from kernelpack.ops.operation import Form, Made, Operation, Read, Request, Traced, Views
from kernelpack.ops.stream import Stream

_GROUPS = ("row_offsets", "scale_offsets", "expert_ids")
"""The inputs that say how rows form groups."""


def _problem(views: Views, outs: Views) -> Problem:
    """The sizes of a call, after the rules about sides hold."""
    t, k = views["x"].shape
    n_active = _count_groups(views)
    experts = views["tensor_scales"].shape[0]
    blocks = -(-t // ROWS) if n_active is None else t // ROWS + n_active
    scales = outs.get("scales")
    problem = Problem(
        t=t,
        k=k,
        e=experts,
        n_active=n_active or 0,
        scale_blocks=blocks if scales is None else scales.shape[0],
        grouped=n_active is not None,
        dtype=views["x"].dtype,
        scale_dtype=DType.U8 if scales is None else scales.dtype,
    )
    problem.check()
    one = problem.grouped or experts == 1
    require(one, f"`tensor_scales` must have 1 element without groups, not {experts}", KERNEL)
    return problem


def _count_groups(views: Views) -> int | None:
    """How many groups there are; None where rows form none."""
    given = [name for name in _GROUPS if name in views]
    if not given:
        return None
    for name in _GROUPS:
        require(name in views, f"`{name}` must be given with `{given[0]}`", KERNEL)
    check_lengths(views, "row_offsets", KERNEL)
    groups, found = views["expert_ids"].shape[0], views["scale_offsets"].shape[0]
    rule = f"`scale_offsets` must have n_active = {groups} elements, not {found}"
    require(found >= groups, rule, KERNEL)
    return groups


def _made(problem: Problem) -> dict[str, Made]:
    return {
        "codes": Made(shape=problem.codes_shape, dtype=DType.U8),
        "scales": Made(shape=problem.scales_shape, dtype=problem.scale_dtype),
    }


def _traced(x: Array, _scales: Array, *, expert_ids: Array = None, **_groups: Array) -> Traced:
    """Scales have the row blocks that are enough for any groups."""
    t, k = x.shape
    blocks = -(-t // ROWS) if expert_ids is None else t // ROWS + expert_ids.shape[0]
    scales = (blocks, nvfp4.atoms_along(k), *nvfp4.ATOM)
    return [((t, k // 2), DType.U8), (scales, DType.U8)]


def _check_values(problem: Problem, read: Read) -> None:
    """Hold groups, tensor scales, and where scales lie against what the kernel relies on."""
    groups, rows = problem.n_active, ("t", problem.t)
    if not problem.grouped:
        _check_tensor_scales(read("tensor_scales"), np.zeros(1, np.int32))
    if not problem.grouped or groups == 0:
        return
    check_offsets(read("row_offsets"), "row_offsets", groups, rows=rows, kernel=KERNEL)
    check_ids(read("expert_ids"), problem.e, KERNEL)
    offsets = read("row_offsets")[: groups + 1]
    found, held = ("scale_offsets", read("scale_offsets")), ("scales", problem.scale_blocks)
    nvfp4.check_row_blocks(offsets, found, held, KERNEL)
    _check_tensor_scales(read("tensor_scales"), read("expert_ids"))


def _check_tensor_scales(scales: NDArray[Any], ids: NDArray[Any]) -> None:
    """Those of experts that take part: a negative one would set bit 7 of every scale."""
    for expert in np.unique(ids[ids >= 0]).tolist():
        found = float(scales[expert])
        rule = f"`tensor_scales` must be positive and finite, not {found} (expert {expert})"
        require(0 < found < np.inf, rule, KERNEL)


@op(
    Operation(
        kernel=KERNEL,
        abis=ABIS,
        inputs={
            "x": Form(dims="t k", dtypes=IN_DTYPES),
            "tensor_scales": nvfp4.EXPERT_SCALES,
            "row_offsets": nvfp4.GROUP_OFFSETS,
            "scale_offsets": Form(dims="n_active", dtypes=OFFSETS),
            "expert_ids": nvfp4.EXPERT_IDS,
        },
        outputs={
            "codes": Form(dims="t k/2", dtypes=nvfp4.CODES),
            "scales": Form(dims="blocks k/64 32 4 4", dtypes=nvfp4.SCALES),
        },
        optional=frozenset(_GROUPS),
        made=_made,
        check_values=_check_values,
        traced=_traced,
    )
)
def nvfp4_quantize(
    x: Array,
    tensor_scales: Array,
    *,
    row_offsets: Array = None,
    scale_offsets: Array = None,
    expert_ids: Array = None,
    codes: Array = None,
    scales: Array = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
    debug: bool = False,
) -> Request[Problem, tuple[Array, Array]]:
    """Quantise; returns codes and scales at once, their values follow on the stream.

    Args:
        x: rows [t, k], bf16 or fp16.
        tensor_scales: fp32; of each expert [e], or [1] where rows form no groups. Such that
            the largest of |x| times it is near 448 * 6; `expert_scales` of a GEMM must hold
            its reciprocal.
        row_offsets: first row of each group, then t: [n_active + 1], u32 or i32.
        scale_offsets: what is added to a group's `row_offsets[g] // 128` to find its first row
            block of scales [n_active]: `formats.grouped_scales` computes it.
        expert_ids: expert of each group [n_active], i32; -1 leaves the group's codes alone,
            and its scales are zero. These three are given together, or not at all.
        codes: the codes [t, k / 2], u8: two (e2m1) a byte, the low nibble first.
        scales: the scales [row blocks, ceil(k / 64), 32, 4, 4], u8 or e4m3; bytes that are no
            row's scale become zero. Without it a new one has t // 128 + n_active row blocks,
            which is enough for any groups, or ceil(t / 128) where there are none.
        stream: a handle, or a stream of any framework; without it the legacy default stream.
        library: the kernels to choose from; without it those of the installed bundle.
        debug: read offsets, ids and tensor scales back and check them first; waits for the
            GPU.

    With numpy arrays the op computes on the emulator, returns when the values are there, and
    makes arrays of zeros where no output is given; offsets, ids and tensor scales are always
    checked.

    Raises:
        ProblemError: an argument is not what the list above says.
        SelectionError: the library holds no kernel for this problem and device.
        CaptureError: first use of a kernel, or a new output, while a stream is captured.
        BundleError: on the emulator: the bundle's PTX, X.ptx.kpk, is not beside it.
        EmulationError: on the emulator: the kernel broke a rule.

    """
    return Request(
        inputs={
            "x": x,
            "tensor_scales": tensor_scales,
            "row_offsets": row_offsets,
            "scale_offsets": scale_offsets,
            "expert_ids": expert_ids,
        },
        outputs={"codes": codes, "scales": scales},
        problem=_problem,
        stream=stream,
        library=library,
        debug=debug,
    )
