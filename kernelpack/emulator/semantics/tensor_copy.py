"""Tensor copies through the TMA unit (PTX ISA 9.7.9.25.5), and what prefetches and queries are
left of it.
"""

from kernelpack.emulator.machine import tensor_map as words
from kernelpack.emulator.machine.cluster import RANK_SHIFT, Cta
from kernelpack.emulator.machine.lanes import Lanes, Mask
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.models import reduction, tma
from kernelpack.emulator.ptx.syntax import Address
from kernelpack.emulator.semantics import access, bulk_copy, copies, mbarrier
from kernelpack.emulator.semantics.spaces import WINDOW_SHIFT, WINDOWS
from kernelpack.emulator.semantics.table import Form, Handler, control
from kernelpack.spec.tensormap import TensorMap

_OFFSET = (1 << RANK_SHIFT) - 1
_DIMENSIONS = ("1d", "2d", "3d", "4d", "5d")
_MODES = ("tile", "tile::gather4", "tile::scatter4")
_FLAGS = (
    *_DIMENSIONS, *_MODES, "global", "shared::cta", "shared::cluster", "L2::cache_hint",
    "mbarrier::complete_tx::bytes", "multicast::cluster", "bulk_group", "cta_group::1",
    "cta_group::2",
)  # fmt: skip


def read_map(warp: Warp, address: int) -> TensorMap:
    """The tensor map at a generic address: in the parameters, or in global memory."""
    machine = warp.cta.machine
    if address >> WINDOW_SHIFT == WINDOWS["param"] >> WINDOW_SHIFT:
        start = address - WINDOWS["param"]
        return words.decode(bytes(machine.parameters.bytes[start : start + words.SIZE]))
    start = address - machine.memory.base
    if not 0 <= start <= machine.memory.size - words.SIZE:
        return words.decode(b"")
    return words.decode(bytes(machine.memory.bytes[start : start + words.SIZE]))


def _is_load(form: Form) -> bool:
    """Whether the destination, written first, is shared memory."""
    first = next(m for m in form.instruction.modifiers if m.split("::")[0] in ("global", "shared"))
    return first.startswith("shared")


def _load_operands(form: Form) -> tuple[str, ...]:
    if not _is_load(form):
        return ("@generic+", "@shared", *(("b64",) if form.has("L2::cache_hint") else ()))
    more = ("u16",) if form.has("multicast::cluster") else ()
    more += ("b64",) if form.has("L2::cache_hint") else ()
    return ("@shared", "@generic+", "@shared", *more)


@control("cp.async.bulk.tensor", "9.7.9.25.5.2", operands=_load_operands, flags=_FLAGS, yields=True)
def copy(form: Form) -> Handler:
    """Start the copy of a box: global to shared, or back."""
    _check_dimension(form)
    return _load(form) if _is_load(form) else _store(form, None)


def _check_dimension(form: Form) -> None:
    """The coordinates must be as many as the name says (gather4 and scatter4: one and four rows)."""
    rank = int(form.one_of(_DIMENSIONS, "0")[0])
    address = next(o for o in form.instruction.operands if isinstance(o, Address) and o.coordinates)
    count = len(address.coordinates.items) if address.coordinates else 0
    expected = 5 if form.has("tile::gather4", "tile::scatter4") else rank
    if count != expected:
        raise form.unsupported(f"{count} coordinates where {expected} are expected")


def _plan(form: Form, tensor_map: TensorMap, coordinates: list[int], shared: int) -> tma.BoxCopy:
    if form.has("tile::gather4", "tile::scatter4"):
        return tma.gather4(tensor_map, coordinates[0], coordinates[1:], shared)
    return tma.tile(tensor_map, coordinates, shared)


def _load(form: Form) -> Handler:
    multicast, paired = form.has("multicast::cluster"), form.has("cta_group::2")

    def call(
        warp: Warp, _split: Split, mask: Mask, to: Lanes, source: Lanes, at: list[Lanes],
        barrier: Lanes, *more: Lanes,
    ) -> None:  # fmt: skip
        warp.cta.machine.current = warp
        for lane in access.each_lane(mask):
            target, b = int(to[lane]), int(barrier[lane])
            tensor_map = read_map(warp, int(source[lane]))
            coordinates = [int(c[lane]) for c in at]
            own = target >> RANK_SHIFT & 0xFF
            ranks = int(more[0][lane]) if multicast else 1 << own
            targets = [
                (access.peer(warp, rank), _completes_at(warp, rank, b, paired=paired))
                for rank in range(16)
                if ranks >> rank & 1
            ]
            plan = _plan(form, tensor_map, coordinates, target & _OFFSET)
            _start_load(form, warp, plan, targets, b & _OFFSET)

    return call


def _completes_at(warp: Warp, rank: int, barrier: int, *, paired: bool) -> Cta:
    """Whose mbarrier a copy to CTA `rank` completes on: its own; with `.cta_group::2` that of the
    CTA of its pair which the operand names.
    """
    if not paired:
        return access.peer(warp, rank)
    return access.peer(warp, (rank & ~1) | (barrier >> RANK_SHIFT & 1))


def _start_load(
    form: Form, warp: Warp, plan: tma.BoxCopy, targets: list[tuple[Cta, Cta]], at: int
) -> None:
    agent = bulk_copy.completion_agent(targets[0][1], at)

    def effect() -> None:
        memory = warp.cta.machine.memory
        data = plan.fill.copy()
        remote = plan.remote - memory.base
        data[plan.inside] = copies.read(memory, remote, agent, warp, "tensor copy")
        for cta, owner in targets:
            copies.write(cta.shared, plan.shared, data, agent, warp, "tensor copy")
            mbarrier.complete(owner, at, agent, plan.tx_bytes)

    warp.cta.machine.engine.issue(form.instruction.text, warp, agent, effect, ordered=False)


def _store(form: Form, operation: str | None) -> Handler:
    def call(
        warp: Warp, _split: Split, mask: Mask, to: Lanes, at: list[Lanes], source: Lanes,
        *_hint: Lanes,
    ) -> None:  # fmt: skip
        warp.cta.machine.current = warp
        seen = set()
        for lane in access.each_lane(mask):
            coordinates = tuple(int(c[lane]) for c in at)
            key = (int(to[lane]), coordinates, int(source[lane]))
            if key in seen and operation is None:
                continue  # the same store from several lanes of a warp is one store
            seen.add(key)
            tensor_map = read_map(warp, key[0])
            tma.check_storable(tensor_map)
            plan = _plan(form, tensor_map, list(coordinates), key[2] & _OFFSET)
            cta = access.peer(warp, key[2] >> RANK_SHIFT & 0xFF)
            _start_store(form, warp, plan, cta, tensor_map, operation)

    return call


def _start_store(
    form: Form, warp: Warp, plan: tma.BoxCopy, cta: Cta, tensor_map: TensorMap,
    operation: str | None,
) -> None:  # fmt: skip
    agent = bulk_copy.bulk_agent(warp)

    def effect() -> None:
        memory = warp.cta.machine.memory
        data = copies.read(cta.shared, plan.shared, agent, warp, "tensor store")[plan.inside]
        remote = plan.remote - memory.base
        if operation is not None:
            old = memory.gather(remote)
            data = reduction.reduce(operation, tensor_map.element, old, data)
        copies.write(memory, remote, data, agent, warp, "tensor store")

    copies.in_group(warp, bulk_copy.GROUP, form.instruction.text, agent, effect)


_OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


@control("cp.reduce.async.bulk.tensor", "9.7.9.25.5.3", operands=_load_operands,
         flags=(*_FLAGS, *_OPERATIONS), yields=True)  # fmt: skip
def reduce(form: Form) -> Handler:
    """Start the reduction of a box of shared memory into a tensor."""
    _check_dimension(form)
    return _store(form, form.one_of(_OPERATIONS))


@control("cp.async.bulk.prefetch.tensor", "9.7.9.25.5.4", operands=("~", "b64?"),
         flags=(*_FLAGS, "L2"))  # fmt: skip
def prefetch(_form: Form) -> Handler:
    """A hint."""
    return lambda *_arguments: None
