"""The tensor pipe of a CTA or of a pair: tcgen05.cp and commit (PTX ISA 9.7.16.9, 9.7.16.12).

The pipe does its operations in order, those of tcgen05.mma among them.
"""

from functools import lru_cache

import numpy as np

from kernelpack.emulator.machine.cluster import RANK_SHIFT, Cta
from kernelpack.emulator.machine.lanes import Lanes, Mask
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.models import mbarrier as unit
from kernelpack.emulator.models import tensor_copy
from kernelpack.emulator.semantics import (
    access,
    matrix_operands,
    mbarrier,
    tensor_allocation,
    tensor_memory,
)
from kernelpack.emulator.semantics.table import Form, Handler, control
from kernelpack.emulator.semantics.tensor_memory import Area

_OFFSET = (1 << RANK_SHIFT) - 1
_MULTICASTS = ("warpx4", "warpx2::02_13", "warpx2::01_23")
_COPY_SHAPES = ("128x256b", "4x256b", "128x128b", "64x128b", "32x128b")


def pipe(form: Form, warp: Warp) -> tuple[Cta, int]:
    """The CTA whose pipe an instruction goes to, and the pipe's agent."""
    lead = tensor_allocation.members(form, warp.cta)[0]
    return lead, lead.agent("tensor pipe", "the tensor pipe")


@control("tcgen05.cp", "9.7.16.9.2", operands=("@tensor", "b64"),
         flags=(*tensor_allocation.GROUPS, *_COPY_SHAPES, *_MULTICASTS), yields=True)  # fmt: skip
def copy(form: Form) -> Handler:
    """Start a copy of shared memory to tensor memory on the tensor pipe."""
    shape, multicast = form.one_of(_COPY_SHAPES), form.one_of(_MULTICASTS)

    def call(warp: Warp, _split: Split, mask: Mask, at: Lanes, descriptor: Lanes) -> None:
        tensor_allocation.check_group(form, warp)
        for lane in access.each_lane(mask):
            plan = _copy_plan(shape, multicast, int(at[lane]))
            _start_copy(form, warp, plan, int(descriptor[lane]))

    return call


@lru_cache(maxsize=512)
def _copy_plan(shape: str, multicast: str, address: int) -> tuple[tensor_copy.TensorCopy, Area]:
    plan = tensor_copy.copy(shape, multicast, address)
    return plan, tensor_memory.area(plan.cells)


def _start_copy(
    form: Form, warp: Warp, copied: tuple[tensor_copy.TensorCopy, Area], raw: int
) -> None:
    plan, area = copied
    _, found = matrix_operands.tcgen05(raw)
    matrix_operands.tell(warp, found)
    where = matrix_operands.region(
        "tcgen05", raw, mn_major=False, rows=plan.rows, k=plan.row_bytes, bits=8
    )
    lead, agent = pipe(form, warp)

    def effect() -> None:
        for cta in tensor_allocation.members(form, warp.cta):
            data = matrix_operands.read(cta, where, agent, warp, "tcgen05.cp")
            words = np.ascontiguousarray(data).view(np.uint32)
            tensor_memory.write(cta, area, words[None], agent, "tcgen05.cp")

    warp.cta.machine.engine.issue(
        form.instruction.text, warp, agent, effect, queue=("pipe", lead.number)
    )


@control("tcgen05.commit", "9.7.16.12.1", types=("b64",), yields=True,
         operands=lambda f: ("@shared", *(("u16",) if f.has("multicast::cluster") else ())),
         flags=(*tensor_allocation.GROUPS, "mbarrier::arrive::one", "shared::cluster",
                "shared::cta", "multicast::cluster"))  # fmt: skip
def commit(form: Form) -> Handler:
    """Arrive on an mbarrier, or on one in each CTA of a mask, when all before it is done."""
    multicast = form.has("multicast::cluster")

    def call(warp: Warp, _split: Split, mask: Mask, at: Lanes, *ranks: Lanes) -> None:
        tensor_allocation.check_group(form, warp)
        warp.cta.machine.current = warp
        tensor_memory.settle(warp)
        for lane in access.each_lane(mask):
            address = int(at[lane])
            addresses = [address]
            if multicast:
                chosen = int(ranks[0][lane])
                addresses = [
                    (address & _OFFSET) | rank << RANK_SHIFT
                    for rank in range(16)
                    if chosen >> rank & 1
                ]
            _start_commit(form, warp, addresses)

    return call


def _start_commit(form: Form, warp: Warp, addresses: list[int]) -> None:
    lead, agent = pipe(form, warp)
    targets = [mbarrier.find(warp, address) for address in addresses]

    def effect() -> None:
        for cta, offset in targets:
            mbarrier.look_fenced(cta, offset)
            mbarrier.update(cta, offset, agent, unit.arrive)

    warp.cta.machine.engine.issue(
        form.instruction.text, warp, agent, effect, queue=("pipe", lead.number)
    )
