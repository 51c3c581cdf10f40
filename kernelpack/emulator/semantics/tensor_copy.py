"""Tensor copies through the TMA unit (PTX ISA 9.7.9.27.1)."""

from dataclasses import dataclass

from kernelpack.emulator.events import Swizzled
from kernelpack.emulator.machine.cluster import RANK_SHIFT, Cta
from kernelpack.emulator.machine.lanes import Lanes, Mask
from kernelpack.emulator.machine.tensor_map import SIZE, decode
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.models import reduction, tma
from kernelpack.emulator.ptx.syntax import Address
from kernelpack.emulator.semantics import access, bulk_copy, copies, map_changes, mbarrier
from kernelpack.emulator.semantics.bulk_copy import HINT, OFFSET, OPERATIONS
from kernelpack.emulator.semantics.copies import Bytewise
from kernelpack.emulator.semantics.spaces import WINDOW_SHIFT, WINDOWS
from kernelpack.emulator.semantics.table import Form, Handler, control, wrong
from kernelpack.spec.tensormap import TensorMap

_NAME = "cp.async.bulk.tensor"
_DIMENSIONS = ("1d", "2d", "3d", "4d", "5d")
_BY_ROWS = ("tile::gather4", "tile::scatter4")
_FLAGS = (
    *_DIMENSIONS,
    *("tile", *_BY_ROWS, "global", "shared::cta", "shared::cluster", HINT, "bulk_group"),
    *("mbarrier::complete_tx::bytes", "multicast::cluster", "cta_group::1", "cta_group::2"),
)


def read_map(warp: Warp, address: int, what: str) -> TensorMap:
    """The tensor map at a generic address: in the parameters, or in global memory."""
    machine = warp.cta.machine
    if address >> WINDOW_SHIFT == WINDOWS["param"] >> WINDOW_SHIFT:
        start, parameters = address - WINDOWS["param"], warp.cta.launched.parameters
        return decode(bytes(parameters.bytes[start : start + SIZE]))
    start = address - machine.memory.base
    if not 0 <= start <= machine.memory.size - SIZE:
        return decode(b"")
    map_changes.used(warp, start, what)
    return decode(bytes(machine.memory.bytes[start : start + SIZE]))


def _operands(form: Form) -> tuple[str, ...]:
    hint = ("b64",) if form.has(HINT) else ()
    if bulk_copy.directions(form)[0] == "global":
        return ("@generic+", "@shared", *hint)
    ranks = ("u16",) if form.has("multicast::cluster") else ()
    return ("@shared", "@generic+", "@shared", *ranks, *hint)


@control("cp.async.bulk.tensor", "9.7.9.27.1.2", operands=_operands, flags=_FLAGS, yields=True)
def copy(form: Form) -> Handler:
    """Start the copy of a box: global to shared, or back."""
    _check_dimension(form)
    return _store(form, "") if bulk_copy.directions(form)[0] == "global" else _load(form)


@control(
    "cp.reduce.async.bulk.tensor",
    "9.7.9.27.1.3",
    operands=_operands,
    flags=(*_FLAGS, *OPERATIONS),
    yields=True,
)
def reduce(form: Form) -> Handler:
    """Start the reduction of a box of shared memory into a tensor."""
    _check_dimension(form)
    return _store(form, form.one_of(OPERATIONS))


def _check_dimension(form: Form) -> None:
    """As many coordinates as the name says; gather4 and scatter4 have a column and four rows."""
    if form.has(*_BY_ROWS) and not form.has("2d"):
        raise wrong(form.instruction, "a gather of four rows is `.2d`, as a scatter is")
    expected = 5 if form.has(*_BY_ROWS) else int(form.one_of(_DIMENSIONS, "0")[0])
    for operand in form.instruction.operands:
        if isinstance(operand, Address) and operand.coordinates:
            count = len(operand.coordinates.items)
            if count != expected:
                raise form.unsupported(f"{count} coordinates where {expected} are expected")


def _plan(form: Form, tensor_map: TensorMap, at: tuple[int, ...], shared: int) -> tma.BoxCopy:
    if form.has(*_BY_ROWS):
        return tma.gather4(tensor_map, at[0], at[1:], shared)
    return tma.tile(tensor_map, at, shared)


# -- loads ----------------------------------------------------------------------------------


def _load(form: Form) -> Handler:
    multicast = form.has("multicast::cluster")

    def call(
        warp: Warp,
        _split: Split,
        mask: Mask,
        to: Lanes,
        source: Lanes,
        coordinates: list[Lanes],
        *rest: Lanes,
    ) -> None:
        for lane in access.each_lane(mask):
            target, barrier = int(to[lane]), int(rest[0][lane])
            at = tuple(int(c[lane]) for c in coordinates)
            tensor_map = read_map(warp, int(source[lane]), _NAME)
            plan = _plan(form, tensor_map, at, target & OFFSET)
            ranks = int(rest[1][lane]) if multicast else 1 << (target >> RANK_SHIFT & 0xFF)
            targets = [
                (access.peer(warp, rank), _completes_at(form, warp, rank, barrier))
                for rank in range(16)
                if ranks >> rank & 1
            ]
            _Load(form, tensor_map, plan, targets, barrier & OFFSET).start(warp)

    return call


def _completes_at(form: Form, warp: Warp, rank: int, barrier: int) -> Cta:
    """Whose mbarrier a copy to CTA `rank` completes on.

    Its own; with `.cta_group::2` that of the CTA of its pair which the operand names.
    """
    if not form.has("cta_group::2"):
        return access.peer(warp, rank)
    return access.peer(warp, (rank & ~1) | (barrier >> RANK_SHIFT & 1))


@dataclass(frozen=True, slots=True, eq=False)
class _Load:
    """A box on its way to CTAs; each completes on the mbarrier at an offset of its partner."""

    form: Form
    tensor_map: TensorMap
    plan: tma.BoxCopy
    targets: list[tuple[Cta, Cta]]
    barrier: int

    def start(self, warp: Warp) -> None:
        """Issue it."""
        plan, at = self.plan, self.barrier
        doer = bulk_copy.completing(self.targets[0][1], at, warp, "a tensor copy")
        memory = warp.cta.machine.memory

        def effect() -> None:
            inside = Bytewise(memory, plan.remote - memory.base).read(doer)
            data = plan.filled(tma.rounded(self.tensor_map, inside))
            for cta, owner in self.targets:
                Bytewise(cta.shared, plan.shared, plan.cells).write(data, doer)
                self._tell_swizzle(cta)
                mbarrier.complete(owner, at, doer, plan.tx_bytes)

        copies.alone(self.form.instruction.text, doer, effect)

    def _tell_swizzle(self, cta: Cta) -> None:
        """Of the cells that exist, should the box reach beyond."""
        bus, unit = cta.machine.bus, cta.shared.unit
        if bus.wants(Swizzled):
            cells = self.plan.cells[0]
            inside = cells[cells < unit.cells]
            bus.emit(Swizzled(unit, inside, True, self.tensor_map.swizzle.name))


# -- stores ---------------------------------------------------------------------------------


def _store(form: Form, operation: str) -> Handler:
    def call(
        warp: Warp,
        _split: Split,
        mask: Mask,
        to: Lanes,
        coordinates: list[Lanes],
        source: Lanes,
        *_hint: Lanes,
    ) -> None:
        wanted = [
            (int(to[lane]), tuple(int(c[lane]) for c in coordinates), int(source[lane]))
            for lane in access.each_lane(mask)
        ]
        if not operation:
            wanted = list(dict.fromkeys(wanted))  # the same store from several lanes is one store
        for address, at, shared in wanted:
            tensor_map = read_map(warp, address, _NAME)
            tma.check_storable(tensor_map)
            if not form.has(*_BY_ROWS):
                tma.check_store_start(tensor_map, at)
            plan = _plan(form, tensor_map, at, shared & OFFSET)
            box = Bytewise(bulk_copy.cta_of(warp, shared).shared, plan.shared, plan.cells)
            _Store(form, operation, tensor_map, plan, box).start(warp)

    return call


@dataclass(frozen=True, slots=True, eq=False)
class _Store:
    """A box of shared memory on its way to a tensor, to be stored or reduced."""

    form: Form
    operation: str
    tensor_map: TensorMap
    plan: tma.BoxCopy
    box: Bytewise

    def start(self, warp: Warp) -> None:
        """Issue it in the warp's bulk group."""
        doer = bulk_copy.bulk(warp, "a tensor store")
        memory = warp.cta.machine.memory
        target = Bytewise(memory, self.plan.remote - memory.base)

        def effect() -> None:
            data = self.box.read(doer)[self.plan.inside]
            if self.operation:
                old = memory.gather(target.offsets)
                data = reduction.reduce(self.operation, self.tensor_map.element, old, data)
            target.write(data, doer)

        copies.in_group(bulk_copy.BulkCopies, self.form.instruction.text, doer, effect)


@control(
    "cp.async.bulk.prefetch.tensor",
    "9.7.9.27.1.4",
    operands=("~", "b64?"),
    flags=(*_FLAGS, "L2"),
)
def prefetch(form: Form) -> Handler:
    """A hint."""
    _check_dimension(form)
    return lambda *_arguments: None
