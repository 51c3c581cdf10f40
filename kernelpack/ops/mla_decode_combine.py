"""The decode attention's partial outputs become one.

    out[t, h] = sum over splits of 2^(lse2[s]) * partial[s] / (sum of 2^(lse2[s]) + exp(sink))

One launch and no wait for the GPU; the same bits at every run. numpy arrays are computed on the CPU
emulator. See `kernels/mla_decode_combine` for what is computed.
"""

from functools import partial
from math import inf

from kernelpack.formats.dtype import DType
from kernelpack.kernels.mla_decode_combine.problem import ABIS, KERNEL, Problem
from kernelpack.kernels.sparse_mla_prefill.problem import bits
from kernelpack.load.library import Library
from kernelpack.ops.arrays import Array
from kernelpack.ops.checks import number, require
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.ops.named import Named
from kernelpack.ops.op import op
from kernelpack.ops.operation import Request, Said, Traced, Views
from kernelpack.ops.stream import Stream


def _said(views: Views, outs: Views, *, lse: bool, dead_lse: float) -> Said:
    """Which arrays there are, and the bits of a float."""
    value = number(dead_lse, "dead_lse", where=KERNEL)
    require(abs(value) == inf, f"`dead_lse` must be inf or -inf, not {value}", KERNEL)
    return {
        "has_lse": int(lse or "lse" in outs),
        "has_sink": int("sink" in views),
        "dead_lse": bits(value),
    }


def _traced(partial_out: Array, *_: Array, **_given: Array) -> Traced:
    """Out and lse."""
    _splits, t, h, width = partial_out.shape
    return [((t, h, width), DType.BF16), ((t, h), DType.FP32)]


@op(
    Named(
        kernel=KERNEL,
        abis=ABIS,
        outputs={"out": "out", "lse": "lse"},
        optional=frozenset({"lse"}),
        problem=Problem.of,
        takes_any_values=True,
        traced=_traced,
    )
)
def mla_decode_combine(
    partial_out: Array,
    partial_lse: Array,
    *,
    sink: Array = None,
    return_lse: bool = False,
    dead_lse: float = inf,
    out: Array = None,
    lse: Array = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
    debug: bool = False,
) -> Request[Said, Array | tuple[Array, ...]]:
    """Join; returns outputs at once, their values follow on the stream.

    Args:
        partial_out: outputs of each split of the keys [partitions, t, h, 512], fp32, normalised
            by the split's own sum; 1 to 256 partitions.
        partial_lse: base-2 logarithm of each split's sum of exp(scale * q·k) [partitions, t, h],
            fp32; -inf: the split has no keys, and its partial_out may be anything.
        sink: logit of a key without value, of each head [h], fp32; -inf means no sink.
        return_lse: whether lse is made and returned, after out.
        dead_lse: lse of a row without keys: inf as FlashMLA has it, or -inf for merging.
        out: the output [t, h, 512], bf16; without it a new one is made.
        lse: natural logarithm of the sum of exp(scale * q·k), without the sink: [t, h], fp32.
        stream: a handle, or a stream of any framework; without it the legacy default stream.
        library: the kernels to choose from; without it those of the installed bundle.
        debug: changes nothing: any values will do.

    A row without keys has out 0, whatever its sink. With numpy arrays the op computes on the
    emulator, and returns when the values are there.

    Raises:
        ProblemError: an argument is not what the list above says.
        SelectionError: the library holds no kernel for this problem and device.
        CaptureError: first use of a kernel, or a new output, while a stream is captured.
        BundleError: on the emulator: the bundle's PTX, X.ptx.kpk, is not beside it.
        EmulationError: on the emulator: the kernel broke a rule.

    """
    return Request(
        inputs={"partial_out": partial_out, "partial_lse": partial_lse, "sink": sink},
        outputs={"out": out, "lse": lse},
        problem=partial(_said, lse=return_lse, dead_lse=dead_lse),
        stream=stream,
        library=library,
        debug=debug,
    )
