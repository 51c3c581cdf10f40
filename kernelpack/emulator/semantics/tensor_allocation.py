"""tcgen05: tensor memory is allocated and freed, by a CTA or by a pair (PTX ISA 9.7.16.7)."""

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.machine.cluster import Cta
from kernelpack.emulator.machine.engine import Tempo
from kernelpack.emulator.machine.lanes import WIDTH, Lanes, Mask
from kernelpack.emulator.machine.warp import Split, Wait, Warp
from kernelpack.emulator.models import tensor_memory as model
from kernelpack.emulator.models.fault import UnitFault, misuse
from kernelpack.emulator.semantics import access, allocation, tensor_memory
from kernelpack.emulator.semantics.table import Form, Handler, control

GROUPS = ("cta_group::1", "cta_group::2")
_SECTION = "9.7.16.7.1"


def pair(cta: Cta) -> list[Cta]:
    """The two CTAs of a pair, the even one first.

    Raises:
        UnitFault: the cluster has no such pair.
    """
    even = cta.rank & ~1
    if even + 1 >= len(cta.cluster.ctas):
        raise UnitFault(misuse(rules.CTA_PAIR, "cta_group::2 in a cluster without a pair"))
    return cta.cluster.ctas[even : even + 2]


def members(form: Form, cta: Cta) -> list[Cta]:
    """The CTAs an instruction works on."""
    return pair(cta) if form.has("cta_group::2") else [cta]


def check_group(form: Form, warp: Warp) -> None:
    """Every tcgen05 instruction of a kernel has the same cta_group (9.7.16.5)."""
    group = form.one_of(GROUPS)
    known = warp.cta.launched.units.of(tensor_memory.Group)
    known.name = known.name or group
    if known.name != group:
        warp.cta.machine.misuse(
            rules.TENSOR_MEMORY_GROUP,
            f"`.{group}` in a kernel that uses `.{known.name}`",
        )


@control(
    "tcgen05.alloc",
    _SECTION,
    operands=("@", "u32"),
    types=("b32",),
    flags=(*GROUPS, "sync", "aligned", "shared", "shared::cta"),
    converged=True,
    yields=True,
)
def allocate(form: Form) -> Handler:
    """Allocate columns; their address is written to shared memory."""
    space = "shared" if form.space == "shared" else "generic"

    def call(warp: Warp, _split: Split, mask: Mask, at: Lanes, count: Lanes) -> Wait | None:
        check_group(form, warp)
        request = _Request(warp, members(form, warp.cta), access.uniform(count, mask))
        if not request.ready():
            return Wait("tensor memory", request.ready, request.describe)
        first = np.zeros(WIDTH, bool)
        first[int(np.argmax(mask))] = True
        start = request.take()
        access.store(warp, first, at, space, [np.full(WIDTH, start, np.uint32)])
        allocation.taken(warp, request.ctas, start, request.columns)
        return None

    return call


class _Request:
    """A warp's part in an allocation, which a warp of each CTA of a pair makes together."""

    def __init__(self, warp: Warp, ctas: list[Cta], columns: int) -> None:
        self.cta, self.ctas, self.columns = warp.cta, ctas, columns
        model.check_columns(columns)
        if self.cta.tensor.relinquished:
            self.cta.machine.misuse(
                rules.TENSOR_MEMORY_RELINQUISHED,
                "tcgen05.alloc after tcgen05.relinquish_alloc_permit",
            )
        if self.cta.tensor.granted is None:
            if not self.cta.tensor.asked:
                self._reach(warp)
            self.cta.tensor.asked = columns

    def _reach(self, warp: Warp) -> None:
        """The pair's other CTA must run by now: columns are taken in both."""
        for cta in self.ctas:
            access.reach(warp, cta, "tcgen05.alloc of its pair", rules.CTA_NOT_STARTED_PAIR)

    def ready(self) -> bool:
        """Whether the columns are granted, or can be."""
        return self.cta.tensor.granted is not None or self._start() is not None

    def _absent(self) -> list[Cta]:
        return [cta for cta in self.ctas if cta is not self.cta and not cta.tensor.asked]

    def _start(self) -> int | None:
        """The first column, free in each CTA; None while one of them has not asked.

        A schedule that is late gives the last ones that are free: a neighbour on the same
        multiprocessor may hold the first ones. Where none fits, kernels rely on column 0.
        """
        if self._absent():
            return None
        busy = np.logical_or.reduce([cta.tensor.busy for cta in self.ctas])
        is_late = self.cta.machine.engine.tempo is Tempo.LAZY
        fit = model.last_fit if is_late and self.cta.may_have_neighbour else model.first_fit
        return fit(busy, self.columns)

    def take(self) -> int:
        """The first column; the warp that comes first allocates it in every CTA."""
        if self.cta.tensor.granted is None:
            start = self._start()
            assert start is not None
            for cta in self.ctas:
                cta.tensor.grant(start, self.columns)
            allocation.granted(self.ctas, start, self.columns)
            self.cta.machine.changes += 1
        return self.cta.tensor.taken()

    def describe(self) -> str:
        """The wait's reason."""
        what = f"tcgen05.alloc of {self.columns} columns; "
        if absent := self._absent():
            return what + f"no warp of cta {absent[0].position}, its pair's other, has issued it"
        return what + f"allocated: {self.cta.tensor.allocations}"


@control("tcgen05.dealloc", _SECTION, operands=("b32", "u32"), types=("b32",),
         flags=(*GROUPS, "sync", "aligned"), converged=True, yields=True)  # fmt: skip
def deallocate(form: Form) -> Handler:
    """Free an allocation."""

    def call(warp: Warp, _split: Split, mask: Mask, at: Lanes, count: Lanes) -> None:
        check_group(form, warp)
        tensor, start = warp.cta.tensor, access.uniform(at, mask)
        columns = access.uniform(count, mask)
        if tensor.allocations.get(start) != columns:
            raise UnitFault(
                misuse(
                    rules.TENSOR_MEMORY_DEALLOC,
                    f"tcgen05.dealloc of {columns} columns at {start:#x}; allocated: "
                    f"{tensor.allocations}",
                )
            )
        allocation.freed(warp, members(form, warp.cta), (start, columns))
        who = f"warp {warp.index} deallocated at {form.instruction.place}"
        tensor.free(start, columns, who)
        warp.cta.machine.changes += 1

    return call


@control("tcgen05.relinquish_alloc_permit", _SECTION,
         flags=(*GROUPS, "sync", "aligned"), converged=True)  # fmt: skip
def relinquish(form: Form) -> Handler:
    """The CTA allocates no more."""

    def call(warp: Warp, _split: Split, _mask: Mask) -> None:
        check_group(form, warp)
        warp.cta.tensor.relinquished = True

    return call
