"""The projection after MLA decode attention: outputs leave the latent space by W_UV, in fp8.

    out[t, h] = w_uv[h] x[t, h]

x is quantised on the way, one scale each 128 of its values, as the weights have a scale each block
of 128 by 128. One launch and no wait for the GPU; the same bits at every run. numpy arrays are
computed on the CPU emulator. See `kernels/block_scaled/reference` for what is computed.
"""

from dataclasses import replace

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.rows import LATENT
from kernelpack.kernels.mla_decode_project.problem import ABIS, KERNEL, VALUES, Problem
from kernelpack.load.library import Library
from kernelpack.ops.arrays import Array, DeviceArray
from kernelpack.ops.checks import check_array, check_contiguous, require
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.ops.named import Named
from kernelpack.ops.op import op
from kernelpack.ops.operation import Read, Request, Said, Traced, Views
from kernelpack.ops.spread import spread, spread_of
from kernelpack.ops.stream import Stream

GROUP = 128
"""Values that share a scale, of tokens and of either side of weights."""


def scales_of_blocks(view: DeviceArray, name: str, n: int, k: int, kernel: str) -> DeviceArray:
    """Scales [h, n / 128, k / 128] of weights, as the rows [h, blocks] that the kernel reads.

    Raises:
        ProblemError: another shape or type, or gaps; names the array.

    """
    sides = (n // GROUP, k // GROUP)
    check_array(view, name, "h n/128 k/128", (DType.FP32,), kernel)
    rule = f"`{name}` must have {sides[0]} x {sides[1]} blocks a head, not {list(view.shape[1:])}"
    require(view.shape[1:] == sides, rule, kernel)
    check_contiguous({name: view}, kernel)
    return replace(view, shape=(view.shape[0], sides[0] * sides[1]), strides=None)


def check_weights(views: Views, name: str, shape: tuple[int, int, int], kernel: str) -> None:
    """Refuse weights of other sides, and scales of another number of heads.

    Raises:
        ProblemError: names the array, what it must be and what it is.

    """
    found = views[name].shape
    require(found == shape, f"`{name}` must be {list(shape)}, not {list(found)}", kernel)
    heads = views[f"{name}_scale"].shape[0]
    require(heads == shape[0], f"`{name}_scale` must have {shape[0]} heads, not {heads}", kernel)


def _located(views: Views) -> Views:
    check_array(views["x"], "x", "t h 512", (DType.BF16,), KERNEL)
    scales = views["w_uv_scale"]
    return {
        **views,
        "x": spread(views["x"], "x", KERNEL),
        "w_uv_scale": scales_of_blocks(scales, "w_uv_scale", VALUES, LATENT, KERNEL),
    }


def _said(views: Views, _outs: Views) -> Said:
    """Where the elements of x lie, which its memory does not say."""
    x = spread_of(views["x"])
    t, h, width = x.sides
    require(width == LATENT, f"`x` must have {LATENT} columns, not {width}", KERNEL)
    check_weights(views, "w_uv", (h, VALUES, LATENT), KERNEL)
    return {"t": t, "h": h, "x_token_stride": x.steps[0], "x_head_stride": x.steps[1]}


def _traced(x: Array, *_: Array, **_given: Array) -> Traced:
    return [((*x.shape[:2], VALUES), DType.BF16)]


def check_scales(name: str, read: Read, kernel: str) -> None:
    """Refuse scales of weights that are not numbers, or negative."""
    scales = read(name)
    rule = f"`{name}` must be finite and at least 0"
    if not ((scales >= 0) & (scales < float("inf"))).all():
        raise ProblemError(rule, where=kernel)


def _check_values(_problem: Problem, read: Read) -> None:
    check_scales("w_uv_scale", read, KERNEL)


@op(
    Named(
        kernel=KERNEL,
        abis=ABIS,
        outputs={"out": "out"},
        problem=Problem.of,
        check_values=_check_values,
        takes_any_values=True,
        traced=_traced,
    )
)
def mla_decode_project(
    x: Array,
    w_uv: Array,
    w_uv_scale: Array,
    *,
    out: Array = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
    debug: bool = False,
) -> Request[Said, Array]:
    """Multiply; returns the output at once, its values follow on the stream.

    Args:
        x: attention's outputs [t, h, 512], bf16. Tokens and heads may be any multiples of 8
            elements apart.
        w_uv: weights of each head [h, 128, 512], e4m3 or its bytes.
        w_uv_scale: what each block of 128 by 128 is to be multiplied by [h, 1, 4], fp32.
        out: the output [t, h, 128], bf16; without it a new one is made.
        stream: a handle, or a stream of any framework; without it the legacy default stream.
        library: the kernels to choose from; without it those of the installed bundle.
        debug: read the scales back first, and refuse those that are negative or no numbers; waits
            for the GPU.

    Values above 1200 count as 1200. A NaN is its token's and head's own. With numpy arrays the op
    computes on the emulator, and returns when the values are there.

    Raises:
        ProblemError: an argument is not what the list above says.
        SelectionError: the library holds no kernel for this problem and device.
        CaptureError: first use of a kernel, or a new output, while a stream is captured.
        BundleError: on the emulator: the bundle's PTX, X.ptx.kpk, is not beside it.
        EmulationError: on the emulator: the kernel broke a rule.

    """
    return Request(
        inputs={"x": x, "w_uv": w_uv, "w_uv_scale": w_uv_scale},
        outputs={"out": out},
        problem=_said,
        located=_located,
        stream=stream,
        library=library,
        debug=debug,
    )
