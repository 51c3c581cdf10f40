"""Cluster launch control: a resident cluster takes over the next one (PTX ISA 9.7.13.17)."""

import numpy as np
import numpy.typing as npt

from kernelpack.emulator import rules
from kernelpack.emulator.machine.cluster import RANK_SHIFT
from kernelpack.emulator.machine.lanes import WIDTH, Lanes, Mask
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.semantics import access, bulk_copy, copies, mbarrier
from kernelpack.emulator.semantics.table import Form, Handler, control, lanes

_SECTION = "9.7.13.17"
_OFFSET = (1 << RANK_SHIFT) - 1
_BYTES = 16
_CANCELED = np.uint64(1)
"""Bit 0 of the answer's upper half."""

_FLAGS = ("shared::cta", "mbarrier::complete_tx::bytes", "multicast::cluster::all")


@control(
    "clusterlaunchcontrol.try_cancel.async",
    _SECTION,
    operands=("@shared", "@shared"),
    types=("b128",),
    flags=_FLAGS,
    yields=True,
)
def try_cancel(form: Form) -> Handler:
    """Ask for the next cluster; the answer is written to shared memory."""
    everyone = form.has("multicast::cluster::all")

    def call(warp: Warp, _split: Split, mask: Mask, at: Lanes, barrier: Lanes) -> None:
        for lane in access.each_lane(mask):
            _ask(form, warp, int(at[lane]), int(barrier[lane]), everyone=everyone)

    return call


def _ask(form: Form, warp: Warp, address: int, barrier: int, *, everyone: bool) -> None:
    own = access.peer(warp, address >> RANK_SHIFT & 0xFF)
    targets = warp.cta.cluster.ctas if everyone else [own]
    for cta in targets:
        access.reach(warp, cta, "try_cancel for every CTA", rules.CTA_NOT_STARTED_CANCEL)
    doer = bulk_copy.completing(own, barrier & _OFFSET, warp, "try_cancel")
    offset = address & _OFFSET
    if offset % _BYTES:
        text = f"the answer's address {hex(offset)} is not aligned to {_BYTES} bytes"
        warp.cta.machine.misuse(rules.MISALIGNED_ANSWER, text)

    def effect() -> None:
        queue = warp.cta.machine.queue
        launch = warp.cta.cluster.launch
        words = answer(queue.cancel(launch) if queue.left_of(launch) else None)
        for cta in targets:
            copies.shared_range(cta, offset, _BYTES).write(words.view(np.uint8), doer)
            mbarrier.complete(cta, barrier & _OFFSET, doer, _BYTES)

    copies.alone(form.instruction.text, doer, effect)


def answer(first: tuple[int, int, int] | None) -> npt.NDArray[np.uint64]:
    """What is written, of the first CTA that was taken over.

    PTX calls it opaque; the bits are those that ptxas has `query_cancel` take, for public kernels
    read them.
    """
    if first is None:
        return np.zeros(2, np.uint64)
    x, y, z = first
    return np.array([x | y << 32 | z << 48, _CANCELED], np.uint64)


@lanes("clusterlaunchcontrol.query_cancel.is_canceled", _SECTION, operands=("=pred", "b128"),
       types=("pred", "b128"))  # fmt: skip
def is_canceled(_form: Form) -> Handler:
    """P = whether a cluster was taken over."""
    return lambda answer: (answer[:, 1] & _CANCELED) != 0


def _first(answer: Lanes) -> list[Lanes]:
    """x, y, z of the first CTA, and 0."""
    x, yz = answer[:, 0] & np.uint64(0xFFFF_FFFF), answer[:, 0] >> np.uint64(32)
    parts = (x, yz & np.uint64(0xFFFF), yz >> np.uint64(16))
    return [*(part.astype(np.uint32) for part in parts), np.zeros(WIDTH, np.uint32)]


@lanes("clusterlaunchcontrol.query_cancel.get_first_ctaid", _SECTION, operands=("={b32}", "b128"),
       types=("b32", "b128"), flags=("v4",))  # fmt: skip
def first_cta(_form: Form) -> Handler:
    """D = the position of the first CTA of the cluster that was taken over."""
    return _first


def _axis(name: str, index: int) -> None:
    @lanes(f"clusterlaunchcontrol.query_cancel.get_first_ctaid::{name}", _SECTION,
           operands=("=b32", "b128"), types=("b32", "b128"))  # fmt: skip
    def build(_form: Form) -> Handler:
        return lambda answer: _first(answer)[index]


for _index, _name in enumerate("xyz"):
    _axis(_name, _index)
