"""The NVFP4 quantiser: 16-bit rows to codes of 4 bits and a scale for each 16 of them.

    x[i, j] ≈ code[i, j] * scale[i, j // 16] / tensor_scale

It makes the tokens of the grouped GEMMs, with their scales where those read them. One launch and
no wait for the GPU. numpy arrays are computed on the CPU emulator, whatever GPU is there. See
`kernels/nvfp4_quantize/reference` for what is computed, to the bit, and `formats/grouped_scales`
for how scales are laid out.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.formats.scale_layout import BLOCKS, ROWS
from kernelpack.kernels.nvfp4_quantize.problem import ABIS, ATOM_COLUMNS, KERNEL, Problem
from kernelpack.load.library import Library
from kernelpack.ops import nvfp4
from kernelpack.ops.arrays import Array
from kernelpack.ops.checks import require
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.ops.groups import check_ids, check_offsets
from kernelpack.ops.named import Named
from kernelpack.ops.op import op
from kernelpack.ops.operation import Read, Request, Said, Traced, Views
from kernelpack.ops.stream import Stream

_GROUPS = ("row_offsets", "scale_offsets", "expert_ids")
"""The inputs that say how rows form groups."""


def _said(views: Views, outs: Views) -> Said:
    """Which form a call has, and the row blocks of new scales, enough for any groups."""
    given, t = [name for name in _GROUPS if name in views], views["x"].shape[0]
    for name in _GROUPS if given else ():
        require(name in views, f"`{name}` must be given with `{given[0]}`", KERNEL)
    groups = views["expert_ids"].shape[0] if given else 0
    said = {"grouped": int(bool(given)), "n_active": groups}
    if "scales" not in outs:
        said["scale_blocks"] = t // ROWS + groups if given else -(-t // ROWS)
    return said


def _problem(sizes: Mapping[str, int]) -> Problem:
    """The problem; without groups there is one tensor scale."""
    problem = Problem.of(sizes)
    one, found = bool(problem.grouped) or problem.e == 1, problem.e
    require(one, f"`tensor_scales` must have 1 element without groups, not {found}", KERNEL)
    return problem


def _traced(x: Array, _scales: Array, *, expert_ids: Array = None, **_groups: Array) -> Traced:
    """Scales have the row blocks that are enough for any groups."""
    t, k = x.shape
    blocks = -(-t // ROWS) if expert_ids is None else t // ROWS + expert_ids.shape[0]
    scales = (blocks, -(-k // ATOM_COLUMNS), ROWS // BLOCKS, BLOCKS, BLOCKS)
    return [((t, k // 2), DType.U8), (scales, DType.U8)]


def _check_values(problem: Problem, read: Read) -> None:
    """Check groups, tensor scales, and where scales lie against what the kernel relies on."""
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
    Named(
        kernel=KERNEL,
        abis=ABIS,
        outputs={"codes": "codes", "scales": "scales"},
        types={"codes": nvfp4.CODES, "scales": nvfp4.SCALES},
        problem=_problem,
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
) -> Request[Said, tuple[Array, Array]]:
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
        problem=_said,
        stream=stream,
        library=library,
        debug=debug,
    )
