"""`st.async` and `red.async`: stores to a CTA of the cluster (PTX ISA 9.7.9.12, 9.7.13.7)."""

from dataclasses import dataclass

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.machine.cluster import RANK_SHIFT
from kernelpack.emulator.machine.lanes import Lanes, Mask
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.models import reduction
from kernelpack.emulator.semantics import access, bulk_copy, copies, mbarrier
from kernelpack.emulator.semantics.bulk_copy import ELEMENTS, OFFSET, OPERATIONS
from kernelpack.emulator.semantics.copies import Bytewise
from kernelpack.emulator.semantics.table import FLOATS, Form, Handler, control

_FLAGS = (
    *("weak", "release", "relaxed", "mmio", "cta", "cluster", "gpu", "sys", "v2", "v4"),
    *("shared::cluster", "global", "mbarrier::complete_tx::bytes"),
)
_TYPES = ("b32", "b64", "u32", "u64", "s32", "s64", *FLOATS)


def _operands(form: Form) -> tuple[str, ...]:
    return ("@shared", "{" + f"b{form.bits}" + "}", "@shared")


@control("st.async", "9.7.9.12", operands=_operands, types=_TYPES, flags=_FLAGS)
def store(form: Form) -> Handler:
    """Start a store that completes on an mbarrier of the same CTA."""
    return _handler(form, "")


@control("red.async", "9.7.13.7", operands=_operands, types=_TYPES, flags=(*_FLAGS, *OPERATIONS))
def reduce(form: Form) -> Handler:
    """Start a reduction that completes on an mbarrier of the same CTA."""
    return _handler(form, form.one_of(OPERATIONS))


@dataclass(frozen=True, slots=True, eq=False)
class _Stores:
    """The stores of one instruction that complete on one mbarrier: addresses, bytes a lane."""

    form: Form
    operation: str
    barrier: int
    to: Lanes
    raw: Lanes

    def start(self, warp: Warp) -> None:
        """Issue them as one operation."""
        cta, at = mbarrier.find(warp, self.barrier)
        if {int(address) >> RANK_SHIFT for address in self.to} != {self.barrier >> RANK_SHIFT}:
            text = "destination and mbarrier are in different CTAs"
            warp.cta.machine.misuse(rules.ASYNC_STORE_RANK, text)
        doer = bulk_copy.completing(cta, at, warp, f"{self.form.instruction.opcode}.async")
        starts = (self.to & np.uint64(OFFSET)).astype(np.intp)
        where = starts[:, None] + np.arange(self.raw.shape[1])

        def effect() -> None:
            if self.operation:
                for lane, row in enumerate(where):
                    target = Bytewise(cta.shared, row)
                    target.write(self._reduced(cta.shared.gather(row), lane), doer)
            else:
                Bytewise(cta.shared, where.reshape(-1)).write(self.raw.reshape(-1), doer)
            mbarrier.complete(cta, at, doer, self.raw.size)

        copies.alone(self.form.instruction.text, doer, effect)

    def _reduced(self, old: Lanes, lane: int) -> Lanes:
        return reduction.reduce(self.operation, ELEMENTS[self.form.type], old, self.raw[lane])


def _handler(form: Form, operation: str) -> Handler:
    if form.has("mmio", "global"):
        raise form.unsupported(f"`{form.instruction.opcode}.async` to global memory")

    def call(
        warp: Warp, _split: Split, mask: Mask, to: Lanes, values: list[Lanes], barrier: Lanes
    ) -> None:
        raw = np.stack([np.ascontiguousarray(v) for v in values], 1).view(np.uint8)
        _check_aligned(form, warp, to, mask, raw.shape[1])
        by_barrier: dict[int, list[int]] = {}
        for lane in access.each_lane(mask):
            by_barrier.setdefault(int(barrier[lane]), []).append(lane)
        for address, lanes in by_barrier.items():
            _Stores(form, operation, address, to[lanes], raw[lanes]).start(warp)

    return call


def _check_aligned(form: Form, warp: Warp, to: Lanes, mask: Mask, size: int) -> None:
    """A destination is a multiple of all its values together."""
    bad = mask & ((to & np.uint64(size - 1)) != 0)
    if np.count_nonzero(bad):
        text = f"{form.instruction.opcode}.async of {size} bytes is not aligned to its size"
        warp.cta.machine.misuse(rules.MISALIGNED_STORE, text, lane=int(bad.argmax()))
