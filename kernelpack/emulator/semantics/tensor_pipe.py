"""The tensor pipe of a CTA or of a pair: tcgen05.cp and commit (PTX ISA 9.7.16.9, 9.7.16.12).

The pipe does its operations in order, those of tcgen05.mma among them. But what one thread issued
is known only to those who wait for a commit of the same thread, and is ordered with what another
one issued by the pairs of 9.7.16.6.2 alone. So each thread that issues is an agent of its own.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kernelpack.emulator.events import Stage
from kernelpack.emulator.machine.cluster import RANK_SHIFT, Cta
from kernelpack.emulator.machine.lanes import Lanes, Mask
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.models import mbarrier as model
from kernelpack.emulator.models import tcgen05_cp
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


COPY = "tcgen05.cp"
"""The kind of copies in a pipe."""


@dataclass(frozen=True, slots=True, eq=False)
class Pipe:
    """The pipe of `lead`, as one thread uses it; the agent does what this thread issued."""

    warp: Warp
    lead: Cta
    agent: int

    def issue(
        self,
        label: str,
        effect: Callable[[], None],
        kind: Hashable = None,
        behind: tuple[Hashable, ...] = (),
        *,
        harmless: bool = False,
    ) -> None:
        """Issue an operation; of a kind, it runs after those of the kinds `behind`."""
        self.warp.cta.machine.engine.issue(
            label,
            self.warp,
            self.agent,
            effect,
            queue=("pipe", self.lead.number),
            harmless=harmless,
            stage=Stage(self.lead.number, kind, behind) if kind is not None else None,
        )


@dataclass(slots=True)
class _Issuer:
    """State of a warp: its lane that was the first to use the pipe."""

    lane: int | None = None


def pipe(form: Form, warp: Warp, lane: int) -> Pipe:
    """The pipe that an instruction of a thread goes to."""
    lead = tensor_allocation.members(form, warp.cta)[0]
    own = warp.units.of(_Issuer)
    if own.lane is None:
        own.lane = lane
    thread = f"warp {warp.index}" + (f" lane {lane}" if lane != own.lane else "")
    agent = warp.cta.agent(("tensor pipe", warp.index, lane), f"the tensor pipe for {thread}")
    return Pipe(warp, lead, agent)


@control("tcgen05.cp", "9.7.16.9.2", operands=("@tensor", "b64"),
         flags=(*tensor_allocation.GROUPS, *_COPY_SHAPES, *_MULTICASTS), yields=True)  # fmt: skip
def copy(form: Form) -> Handler:
    """Start a copy of shared memory to tensor memory on the tensor pipe."""
    shape, multicast = form.one_of(_COPY_SHAPES), form.one_of(_MULTICASTS)

    def call(warp: Warp, _split: Split, mask: Mask, at: Lanes, descriptor: Lanes) -> None:
        tensor_allocation.check_group(form, warp)
        for lane in access.each_lane(mask):
            plan = _copy_plan(shape, multicast, int(at[lane]))
            _start_copy(form, pipe(form, warp, lane), plan, int(descriptor[lane]))

    return call


@lru_cache(maxsize=512)
def _copy_plan(shape: str, multicast: str, address: int) -> tuple[tcgen05_cp.CopyPlan, Area]:
    plan = tcgen05_cp.copy(shape, multicast, address)
    return plan, tensor_memory.area(plan.cells)


def _start_copy(
    form: Form, through: Pipe, copied: tuple[tcgen05_cp.CopyPlan, Area], raw: int
) -> None:
    plan, area = copied
    warp, agent = through.warp, through.agent
    _, found = matrix_operands.tcgen05(raw)
    matrix_operands.tell(warp, found)
    where = matrix_operands.region(
        "tcgen05", raw, mn_major=False, rows=plan.rows, k=plan.row_bytes, bits=8
    )

    def effect() -> None:
        for cta in tensor_allocation.members(form, warp.cta):
            data = matrix_operands.read(cta, where, agent, warp, "tcgen05.cp")
            words = np.ascontiguousarray(data).view(np.uint32)
            tensor_memory.write(cta, area, words[None], agent, "tcgen05.cp")

    through.issue(form.instruction.text, effect, COPY)


@control("tcgen05.commit", "9.7.16.12.1", types=("b64",), yields=True,
         operands=lambda f: ("@shared", *(("u16",) if f.has("multicast::cluster") else ())),
         flags=(*tensor_allocation.GROUPS, "mbarrier::arrive::one", "shared::cluster",
                "shared::cta", "multicast::cluster"))  # fmt: skip
def commit(form: Form) -> Handler:
    """Arrive on an mbarrier, or on one in each CTA of a mask, when all of its thread is done."""
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
            _start_commit(form, pipe(form, warp, lane), addresses)

    return call


def _start_commit(form: Form, through: Pipe, addresses: list[int]) -> None:
    targets = [mbarrier.find(through.warp, address) for address in addresses]

    def effect() -> None:
        for cta, offset in targets:
            mbarrier.look_fenced(cta, offset)
            mbarrier.update(cta, offset, through.agent, model.arrive)

    through.issue(form.instruction.text, effect, harmless=True)
