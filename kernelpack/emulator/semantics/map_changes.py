"""Tensor maps that a kernel changes (PTX ISA 9.7.9.28, 9.7.13.4, 9.7.13.16).

The TMA unit reads maps through a proxy of its own. So a map in global memory that was changed in
this run is used only after two fences: of whoever changed it, and, since, of a warp of the block
that uses it: a proxy fence counts for all that comes after it in causality order, and for its
block alone (PTX ISA 8.9.5). Public compilers have one warp acquire, and barriers hand it on.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.events import Access, Fenced, LanesMet
from kernelpack.emulator.machine import tensor_map
from kernelpack.emulator.machine.lanes import EVERY, LANE_IDS, WIDTH, Lanes, Mask
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.semantics import access, order
from kernelpack.emulator.semantics.memory import SCOPES
from kernelpack.emulator.semantics.spaces import WINDOW_SHIFT, WINDOWS
from kernelpack.emulator.semantics.table import Form, Handler, control, machine, wrong

_HALF = tensor_map.SIZE // 2


@dataclass(slots=True)
class Changed:
    """A map that an agent changed: whether it fenced it, and which blocks did that may use it."""

    by: int
    is_released: bool = False
    acquired: set[int] = field(default_factory=set)


@dataclass(slots=True)
class _Maps:
    """State of a machine: the maps in global memory that were changed, by their offsets."""

    changed: dict[int, Changed] = field(default_factory=dict)


def changed(warp: Warp) -> dict[int, Changed]:
    """The maps in global memory that were changed, by their offsets."""
    return warp.cta.machine.units.of(_Maps).changed


def used(warp: Warp, offset: int, what: str) -> None:
    """A copy is issued through the map at an offset of global memory."""
    found = changed(warp).get(offset)
    if found is None:
        return
    bus, memory = warp.cta.machine.bus, warp.cta.machine.memory
    cells = np.arange(offset // 4, (offset + tensor_map.SIZE) // 4)
    if bus.wants(Access):
        bus.emit(
            Access(memory.unit, cells, warp.agent, False, "generic", what=f"the map of {what}")
        )
    if not found.is_released:
        text = f"{what} uses a tensor map that was changed with no fence to the tensor map proxy"
        warp.cta.machine.misuse(rules.TENSORMAP_RELEASE, text)
    elif warp.cta.number not in found.acquired:
        text = f"{what} uses a tensor map that was changed, and its block did not acquire it since"
        warp.cta.machine.misuse(rules.TENSORMAP_ACQUIRE, text)


_FIELDS = (*tensor_map.SIDES, *tensor_map.CHOICES, "global_address", "rank")


def _replace_operands(form: Form) -> tuple[str, ...]:
    has_side = form.one_of(tensor_map.SIDES)
    return ("@", "#", "T") if has_side else ("@", "T")


@machine(
    "tensormap.replace.tile", "9.7.9.28", operands=_replace_operands, types=("b32", "b64"),
    flags=(*_FIELDS, "b1024", "global", "shared::cta"),
)  # fmt: skip
def replace(form: Form) -> Handler:
    """A field of the map at an address = a."""
    name = form.one_of(_FIELDS)
    wide = "b64" if name in ("global_address", "global_stride") else "b32"
    if not name or form.type != wide or not form.has("b1024"):
        raise wrong(form.instruction, f"a field of a tensor map is `.b1024.{wide}`")
    ordinal = form.constant(1) if name in tensor_map.SIDES else 0
    if not 0 <= ordinal < tensor_map.SIDES.get(name, 1):
        raise wrong(form.instruction, f"`{name}` has no number {ordinal}")
    if name in tensor_map.CHOICES and not 0 <= form.constant(1) < len(tensor_map.CHOICES[name]):
        raise form.unsupported(f"`{name}` of {form.constant(1)}")

    def call(warp: Warp, mask: Mask | None, at: Lanes, value: Lanes) -> None:
        for lane, raw in list(_maps(warp, mask, at, form.space)):
            new = tensor_map.replaced(raw, name, ordinal, int(value[lane]))
            _store(warp, _only(lane), at, form.space, new)

    return call


def _only(lane: int) -> Mask:
    return np.isin(LANE_IDS, lane)


def _maps(warp: Warp, mask: Mask | None, at: Lanes, space: str) -> Iterator[tuple[int, bytes]]:
    """Each lane that runs it, with the map that it names."""
    for lane in access.each_lane(mask):
        halves = (
            access.load(warp, _only(lane), at + np.uint64(k), space, size=8, count=8)
            for k in (0, _HALF)
        )
        yield lane, b"".join(word[lane].tobytes() for half in halves for word in half)


def _store(warp: Warp, mask: Mask, at: Lanes, space: str, raw: bytes) -> None:
    """Lanes write a map; where that is global memory, it is changed from now on."""
    values = np.frombuffer(raw, np.uint64)
    for k in range(2):
        part = [np.full(WIDTH, value) for value in values[8 * k : 8 * k + 8]]
        access.store(warp, mask, at + np.uint64(_HALF * k), space, part)
    for memory, offsets, _ in access.place(warp, mask, at, space):
        if memory.unit.kind == "global":
            changed(warp)[int(offsets[0])] = Changed(warp.agent)


@control(
    "tensormap.cp_fenceproxy", "9.7.13.16", operands=("@global", "@shared", "#"),
    flags=("global", "shared::cta", "tensormap::generic", "release", *SCOPES, "sync", "aligned"),
    converged=True,
)  # fmt: skip
def copy(form: Form) -> Handler:
    """Copy a map from shared to global memory, for the tensor map proxy."""
    if form.constant(2) != tensor_map.SIZE:
        raise wrong(form.instruction, f"a tensor map has {tensor_map.SIZE} bytes")
    scope = order.scope_of(form)

    def call(warp: Warp, _split: Split, mask: Mask, to: Lanes, source: Lanes) -> None:
        bus, lane = warp.cta.machine.bus, int(mask.argmax())
        bus.emit(LanesMet(warp.agent))
        ((_, raw),) = _maps(warp, _only(lane), source, "shared")
        _store(warp, _only(lane), to, "global", raw)
        for memory, offsets, _ in access.place(warp, _only(lane), to, "global"):
            del memory
            changed(warp)[int(offsets[0])].is_released = True
        bus.emit(Fenced(warp.agent, scope, acquires=False))

    return call


def _fence_operands(form: Form) -> tuple[str, ...]:
    return ("@", "#") if form.has("acquire") else ()


@machine(
    "fence.proxy.tensormap::generic", "9.7.13.4", operands=_fence_operands,
    flags=("acquire", "release", *SCOPES),
)  # fmt: skip
def fence(form: Form) -> Handler:
    """A warp hands the maps it changed to the tensor map proxy, or takes over one that was."""

    def release(warp: Warp, _mask: Mask | None) -> None:
        for one in changed(warp).values():
            one.is_released = one.is_released or one.by == warp.agent

    def acquire(warp: Warp, mask: Mask | None, at: Lanes) -> None:
        chosen = EVERY if mask is None else mask
        base = np.uint64(warp.cta.machine.memory.base)
        for address in np.unique(at[chosen]):
            if int(address) >> WINDOW_SHIFT == WINDOWS["param"] >> WINDOW_SHIFT:
                continue
            found = changed(warp).get(int(address - base))
            if found is not None:
                found.acquired.add(warp.cta.number)

    if not form.has("acquire", "release"):
        raise wrong(form.instruction, "a fence of tensor maps acquires or releases")
    return acquire if form.has("acquire") else release
