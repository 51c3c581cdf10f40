"""Special registers (PTX ISA 10): what a warp can ask about itself and the launch."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from kernelpack.emulator.faults import UnsupportedError
from kernelpack.emulator.machine.lanes import LANE_IDS, Lanes, constant

if TYPE_CHECKING:
    from kernelpack.emulator.machine.warp import Warp

_AXES = {"x": 0, "y": 1, "z": 2}
_ONES = 0xFFFF_FFFF
_LANE_MASKS: dict[str, Callable[[int], int]] = {
    "lanemask_eq": lambda lane: 1 << lane,
    "lanemask_lt": lambda lane: (1 << lane) - 1,
    "lanemask_le": lambda lane: (2 << lane) - 1,
    "lanemask_gt": lambda lane: _ONES & ~((2 << lane) - 1),
    "lanemask_ge": lambda lane: _ONES & ~((1 << lane) - 1),
}
_VECTORS: dict[str, Callable[["Warp"], tuple[int, int, int]]] = {
    "ntid": lambda w: w.cta.launched.shape.block,
    "ctaid": lambda w: w.cta.position,
    "nctaid": lambda w: w.cta.launched.shape.grid,
    "cluster_ctaid": lambda w: _zip(int.__mod__, w.cta.position, w.cta.launched.shape.cluster),
    "cluster_nctaid": lambda w: w.cta.launched.shape.cluster,
    "clusterid": lambda w: _zip(int.__floordiv__, w.cta.position, w.cta.launched.shape.cluster),
    "nclusterid": lambda w: _zip(
        int.__floordiv__, w.cta.launched.shape.grid, w.cta.launched.shape.cluster
    ),
}
_SCALARS: dict[str, Callable[["Warp"], int]] = {
    "warpid": lambda w: w.index,
    "nwarpid": lambda w: -(-w.cta.launched.shape.threads // 32),
    "smid": lambda w: w.cta.number % w.cta.launched.shape.target.multiprocessors,
    "nsmid": lambda w: w.cta.launched.shape.target.multiprocessors,
    "gridid": lambda w: w.cta.launched.index,
    "cluster_ctarank": lambda w: w.cta.rank,
    "cluster_nctarank": lambda w: len(w.cta.cluster.ctas),
    "dynamic_smem_size": lambda w: w.cta.launched.shape.dynamic_shared_bytes,
    "total_smem_size": lambda w: w.cta.shared.size - 1024,
    "aggr_smem_size": lambda w: w.cta.shared.size,
    "reserved_smem_offset_begin": lambda _: 0,
    "reserved_smem_offset_end": lambda _: 1024,
    "reserved_smem_offset_cap": lambda _: 0,
    "envreg1": lambda w: w.cta.launched.workspace >> 32,
    "envreg2": lambda w: w.cta.launched.workspace & _ONES,
    "clock": lambda w: w.cta.machine.time & _ONES,
    "clock_hi": lambda w: w.cta.machine.time >> 32,
    "globaltimer_lo": lambda w: w.cta.machine.time & _ONES,
    "globaltimer_hi": lambda w: w.cta.machine.time >> 32,
}
_SCALARS_64: dict[str, Callable[["Warp"], int]] = {
    "clock64": lambda w: w.cta.machine.time,
    "globaltimer": lambda w: w.cta.machine.time,
}


def _zip(
    function: Callable[[int, int], int], a: tuple[int, int, int], b: tuple[int, int, int]
) -> tuple[int, int, int]:
    x, y, z = (function(p, q) for p, q in zip(a, b, strict=True))
    return x, y, z


def special_register(warp: "Warp", name: str) -> Lanes:
    """The value of `%name` in each lane.

    Raises:
        UnsupportedError: the emulator does not know this register.
    """
    head, _, axis = name.partition(".")
    if head == "tid" and axis in _AXES:
        return _thread(warp, _AXES[axis])
    if head in _VECTORS and axis in _AXES:
        return constant(_VECTORS[head](warp)[_AXES[axis]], 32)
    if name == "laneid":
        return LANE_IDS.astype(np.uint32)
    if name in _LANE_MASKS:
        return np.array([_LANE_MASKS[name](lane) for lane in range(32)], np.uint32)
    if name in _SCALARS:
        return constant(_SCALARS[name](warp), 32)
    if name in _SCALARS_64:
        return constant(_SCALARS_64[name](warp), 64)
    if name == "is_explicit_cluster":
        return constant(int(warp.cta.launched.shape.explicit_cluster), 1)
    raise UnsupportedError(f"special register `%{name}` is not modelled")


def _thread(warp: "Warp", axis: int) -> Lanes:
    """The coordinate of each thread in its block."""
    x, y, _ = warp.cta.launched.shape.block
    along = (warp.threads % x, warp.threads // x % y, warp.threads // (x * y))
    return along[axis].astype(np.uint32)
