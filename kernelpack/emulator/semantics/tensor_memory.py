"""tcgen05: tensor memory as cells, its loads and stores (PTX ISA 9.7.16.8)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.events import Access, Acquire, Release, TensorFence
from kernelpack.emulator.machine.cluster import TENSOR_BLOCKS, Cta
from kernelpack.emulator.machine.engine import Operation
from kernelpack.emulator.machine.lanes import WIDTH, Lanes, Mask
from kernelpack.emulator.machine.warp import Landing, Split, Warp
from kernelpack.emulator.models import tensor_memory as model
from kernelpack.emulator.models import tensor_registers
from kernelpack.emulator.models.tensor_memory import Cells
from kernelpack.emulator.semantics import access
from kernelpack.emulator.semantics.table import Form, Handler, control

_ALLOCATION = "9.7.16.7.1"
_ACCESS = "9.7.16.8"

# -- cells ----------------------------------------------------------------------------------

GROUP_LANES = 16
"""Lanes that the checks take together: every layout starts and ends at a multiple of them."""
BLOCK = model.COLUMNS // TENSOR_BLOCKS
PAIR = "cta_group::2"


@dataclass(slots=True)
class Group:
    """State of a launch: the `cta_group` of its first tcgen05 instruction that has one."""

    name: str = ""


@dataclass(slots=True)
class _InFlight:
    """State of a warp: how its loads finish, and its last store."""

    loads: list[Callable[[], None]] = field(default_factory=list)
    store: Operation | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Area:
    """Cells of tensor memory; the groups they lie in, for the checks; their columns.

    `index` selects them in an array of 128 lanes x 512 columns, by slices where they are a block.
    """

    cells: Cells
    groups: Lanes
    columns: Lanes
    blocks: Lanes
    """Of 32 columns, as they are allocated."""
    index: tuple[Any, Any]


def area(cells: Cells) -> Area:
    """Cells with what is computed from them once."""
    groups = cells.lanes // GROUP_LANES * model.COLUMNS + cells.columns
    columns = np.unique(cells.columns)
    return Area(cells, np.unique(groups), columns, np.unique(columns // BLOCK), _index(cells))


def _index(cells: Cells) -> tuple[Any, Any]:
    """Slices where the cells are whole rows of neighbours, as an accumulator is; else arrays."""
    lanes, columns = cells.lanes, cells.columns
    rows, width = lanes.size, columns.size
    is_block = lanes.shape == (rows, 1) and columns.shape == (1, width)
    if is_block and (np.diff(lanes[:, 0]) == 1).all() and (np.diff(columns[0]) == 1).all():
        first, left = int(lanes[0, 0]), int(columns[0, 0])
        return slice(first, first + rows), slice(left, left + width)
    return lanes, columns


def tell(cta: Cta, where: Area, agent: int, *, write: bool, what: str) -> None:
    """Report an access to tensor memory to the checks."""
    bus = cta.machine.bus
    if bus.wants(Access):
        bus.emit(Access(cta.tensor.unit, where.groups, agent, write, "tensor", what=what))
        if cta.launched.units.of(Group).name == PAIR:
            bus.emit(Access(cta.tensor.uses, where.blocks, agent, False, "tensor", what=what))


def read(cta: Cta, where: Area, agent: int, what: str) -> np.ndarray:
    """The words of cells; allocated and written they must be."""
    allocated = check_columns(cta, where, what)
    if allocated and not cta.tensor.written[where.index].all():
        cta.machine.misuse(
            rules.TENSOR_MEMORY_UNINITIALISED,
            f"{what} reads tensor memory never written",
        )
    tell(cta, where, agent, write=False, what=what)
    words: Lanes = cta.tensor.words[where.index].copy()
    return words


def write(cta: Cta, where: Area, words: Lanes, agent: int, what: str) -> None:
    """Write words to cells."""
    check_columns(cta, where, what)
    tell(cta, where, agent, write=True, what=what)
    cta.tensor.words[where.index] = words
    cta.tensor.written[where.index] = True
    cta.machine.changes += 1


def check_columns(cta: Cta, where: Area, what: str) -> bool:
    """The columns must be allocated; whether they are."""
    tensor = cta.tensor
    if np.count_nonzero(tensor.busy[where.columns]) == where.columns.size:
        return True
    first, last = int(where.columns[0]), int(where.columns[-1])
    columns = (
        f"{what} of column {first}" if first == last else f"{what} of columns {first} to {last}"
    )
    gone = next((tensor.freed[b] for b in where.blocks.tolist() if b in tensor.freed), "")
    if not tensor.is_used:
        text = f"{columns}, and the CTA has allocated no tensor memory"
    elif gone:
        text = f"{columns}, which {gone}"
    else:
        text = f"{columns}, allocated: {tensor.allocations}"
    cta.machine.misuse(rules.TENSOR_MEMORY_UNALLOCATED, text, once=not tensor.is_used)
    return False


# -- loads and stores -----------------------------------------------------------------------

_SHAPES = ("32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2")
_REPEATS = tuple(f"x{1 << k}" for k in range(8))
_FLAGS = ("sync", "aligned", *_SHAPES, *_REPEATS)


def _area(form: Form, warp: Warp, address: int, half_split: int, *, pack: bool) -> Area:
    lane, column = model.split(address)
    lane = model.quadrant(lane, warp.index)
    repeats = int(form.one_of(_REPEATS, "x1")[1:])
    return _registers(form.one_of(_SHAPES), repeats, model.join(lane, column), pack, half_split)


@lru_cache(maxsize=1024)
def _registers(shape: str, repeats: int, address: int, pack: bool, half_split: int) -> Area:
    return area(
        tensor_registers.registers(shape, repeats, address, pack=pack, half_split=half_split)
    )


def _load_operands(form: Form) -> tuple[str, ...]:
    return ("={b32}", "@tensor", *(("#",) if form.has("16x32bx2") else ()))


@control("tcgen05.ld", _ACCESS, operands=_load_operands, types=("b32",),
         flags=(*_FLAGS, "pack::16b"), converged=True, delayed=True, yields=True)  # fmt: skip
def load(form: Form) -> Handler:
    """Start a load; the registers are filled at the latest when they are used or waited for."""
    pack = form.has("pack::16b")
    half_split = form.constant(2) if form.has("16x32bx2") else 0
    count = form.length(0)

    def call(warp: Warp, _split: Split, mask: Mask, at: Lanes) -> object:
        where = _area(form, warp, access.uniform(at, mask), half_split, pack=pack)
        if len(where.cells.lanes) != count:
            raise form.unsupported(f"{count} registers where {len(where.cells.lanes)} are filled")
        check_columns(warp.cta, where, "tcgen05.ld")
        out = _start_load(form, warp, where)
        return out if count > 1 else out[0]

    return call


def _start_load(form: Form, warp: Warp, where: Area) -> list[Lanes]:
    filled = np.full((len(where.cells.lanes), WIDTH), 0xFFFF_FFFF, np.uint32)
    agent = warp.cta.agent(("tcgen05.ld", warp.index), f"tcgen05.ld of warp {warp.index}")
    channel = ("tcgen05.ld", agent)
    engine, bus = warp.cta.machine.engine, warp.cta.machine.bus

    def effect() -> None:
        filled[:] = tensor_registers.to_registers(read(warp.cta, where, agent, "tcgen05.ld"))
        bus.emit(Release(agent, channel))

    operation = engine.issue(
        form.instruction.text, warp, agent, effect, queue=("tcgen05.ld", warp.agent)
    )

    def finish() -> None:
        engine.finish(operation)
        bus.emit(Acquire(warp.agent, channel))
        warp.inflight.pop(id(filled), None)

    warp.inflight[id(filled)] = Landing(finish, lambda: _early(form, warp))
    warp.units.of(_InFlight).loads.append(finish)
    return list(filled)


def _early(form: Form, warp: Warp) -> None:
    warp.cta.machine.misuse(
        rules.TENSOR_LOAD_NOT_WAITED,
        f"registers of the tcgen05.ld at {form.instruction.place} are used before tcgen05.wait::ld",
    )


@control("tcgen05.wait::ld", "9.7.16.8.5", flags=("sync", "aligned"), converged=True, yields=True)
def wait_load(_form: Form) -> Handler:
    """Wait for this warp's loads."""

    def call(warp: Warp, _split: Split, _mask: Mask) -> None:
        own = warp.units.of(_InFlight)
        loads, own.loads = own.loads, []
        for finish in loads:
            finish()

    return call


def _store_operands(form: Form) -> tuple[str, ...]:
    return ("@tensor", *(("#",) if form.has("16x32bx2") else ()), "{b32}")


@control("tcgen05.st", _ACCESS, operands=_store_operands, types=("b32",),
         flags=(*_FLAGS, "unpack::16b"), converged=True, yields=True)  # fmt: skip
def store(form: Form) -> Handler:
    """Start a store; it takes effect at the latest when it is waited for, or at `settle`."""
    pack = form.has("unpack::16b")
    half_split = form.constant(1) if form.has("16x32bx2") else 0

    def call(warp: Warp, _split: Split, mask: Mask, at: Lanes, values: list[Lanes]) -> None:
        where = _area(form, warp, access.uniform(at, mask), half_split, pack=pack)
        if len(where.cells.lanes) != len(values):
            raise form.unsupported(
                f"{len(values)} registers where {len(where.cells.lanes)} are stored"
            )
        agent = warp.cta.agent(("tcgen05.st", warp.index), f"tcgen05.st of warp {warp.index}")
        words = tensor_registers.from_registers(np.array(values), pack=pack)
        machine = warp.cta.machine

        def effect() -> None:
            write(warp.cta, where, words, agent, "tcgen05.st")
            machine.bus.emit(Release(agent, ("tcgen05.st", agent)))

        warp.units.of(_InFlight).store = machine.engine.issue(
            form.instruction.text, warp, agent, effect, queue=("tcgen05.st", warp.agent)
        )

    return call


def settle(warp: Warp) -> None:
    """Let the warp's stores take effect: it is about to signal that it got here.

    Nothing but `tcgen05.wait::st` orders them before that. Yet hardware has them done by then:
    kernels that hand rows over in tensor memory without the wait are right on it (CUTLASS 77).
    """
    last = warp.units.of(_InFlight).store
    if last is not None:
        warp.cta.machine.engine.finish(last)


@control("tcgen05.wait::st", "9.7.16.8.5", flags=("sync", "aligned"), converged=True, yields=True)
def wait_store(_form: Form) -> Handler:
    """Wait for this warp's stores."""

    def call(warp: Warp, _split: Split, _mask: Mask) -> None:
        own = warp.units.of(_InFlight)
        last, own.store = own.store, None
        if last is not None:
            warp.cta.machine.engine.finish(last)
            warp.cta.machine.bus.emit(Acquire(warp.agent, ("tcgen05.st", last.agent)))

    return call


@control("tcgen05.fence::before_thread_sync tcgen05.fence::after_thread_sync", "9.7.16.11")
def fence(form: Form) -> Handler:
    """Order tcgen05 operations across a synchronisation of threads."""
    is_before = form.instruction.modifiers[0] == "fence::before_thread_sync"

    def call(warp: Warp, _split: Split, _mask: Mask) -> None:
        warp.cta.machine.bus.emit(TensorFence(warp.agent, is_before))

    return call
