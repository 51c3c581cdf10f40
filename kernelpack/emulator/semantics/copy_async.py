"""`cp.async`: copies of 4 to 16 bytes a thread from global to shared memory (PTX ISA 9.7.9.25.3)."""

import numpy as np

from kernelpack.emulator.machine.lanes import Lanes, Mask
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.models import mbarrier as unit
from kernelpack.emulator.semantics import access, copies, mbarrier
from kernelpack.emulator.semantics.table import Form, Handler, control

_GROUP = "cp.async"


def _operands(form: Form) -> tuple[str, ...]:
    count = len(form.instruction.operands)
    hint = form.has("L2::cache_hint")
    sizes = ("u32",) if count - hint == 4 else ()
    return ("@shared", "@global", "#", *sizes, *(("b64",) if hint else ()))


@control("cp.async.ca cp.async.cg", "9.7.9.25.3.1", operands=_operands, flags=(
    *("shared", "shared::cta", "global", "L2::cache_hint", "L2::64B", "L2::128B", "L2::256B"),
))  # fmt: skip
def copy(form: Form) -> Handler:
    """Start copies; bytes past the source size are filled with zeros."""
    size = form.constant(2)
    partial = len(_operands(form)) - form.has("L2::cache_hint") == 4
    if size not in (4, 8, 16) or (form.instruction.modifiers[1] == "cg" and size != 16):
        raise form.unsupported(f"cp.async of {size} bytes")

    def call(warp: Warp, _split: Split, mask: Mask, to: Lanes, source: Lanes, *more: Lanes) -> None:
        cta = warp.cta
        agent = cta.agent(("cp.async", warp.index), f"cp.async of warp {warp.index}")
        wanted = more[0].copy() if partial else np.full(len(to), size, np.uint32)
        lanes, to_, source_ = mask.copy(), to.copy(), source.copy()
        if (wanted[lanes] > size).any():
            cta.machine.misuse("cp-async-size", f"a source size above {size}", "9.7.9.25.3.1")

        def effect() -> None:
            _transfer(warp, agent, lanes, to_, source_, wanted, size)

        copies.in_group(warp, _GROUP, form.instruction.text, agent, effect)

    return call


def _transfer(
    warp: Warp, agent: int, mask: Mask, to: Lanes, source: Lanes, wanted: Lanes, size: int
) -> None:
    machine = warp.cta.machine
    memory = machine.memory
    steps = np.arange(size)
    remote = (source[mask].astype(np.int64) - memory.base)[:, None] + steps
    inside = steps < wanted[mask][:, None]
    data = np.zeros(remote.shape, np.uint8)
    if inside.any():
        data[inside] = copies.read(memory, remote[inside], agent, warp, "cp.async")
    for target, offsets, lanes in access.place(warp, mask, to, "shared"):
        chosen = data if lanes is mask or lanes is None else data[lanes[mask]]
        if (offsets % np.uint64(size)).any() or (source[mask] % np.uint64(size)).any():
            machine.misuse("misaligned", f"cp.async of {size} bytes is not aligned", "9.7.9.25.3.1")
        where = offsets.astype(np.intp)[:, None] + steps
        access_cells = where.reshape(-1)
        _write_generic(target, access_cells, chosen.reshape(-1), agent, warp)


def _write_generic(memory, offsets, values, agent: int, warp: Warp) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """`cp.async` writes through the generic proxy (9.7.9.25.3: it is not an async-proxy copy)."""
    from kernelpack.emulator.events import Access  # noqa: PLC0415

    bus = warp.cta.machine.bus
    memory.kernel_wrote = True
    if bus.wants(Access) and int(offsets.max()) < memory.size:
        cells = copies.cells_of(offsets)
        bus.emit(Access(memory.unit, cells, agent, write=True, proxy="generic", what="cp.async"))
    memory.scatter(offsets, values)
    warp.cta.machine.changes += 1


@control("cp.async.commit_group", "9.7.9.25.3.2")
def commit(_form: Form) -> Handler:
    """Close the open group."""
    return lambda warp, _split, _mask: copies.groups(warp, _GROUP).commit()


@control("cp.async.wait_group", "9.7.9.25.3.3", operands=("#",), yields=True)
def wait_group(form: Form) -> Handler:
    """Wait until at most N groups are unfinished."""
    keep = form.constant(0)
    return lambda warp, _split, _mask: copies.groups(warp, _GROUP).finish(warp, keep)


@control("cp.async.wait_all", "9.7.9.25.3.3", yields=True)
def wait_all(_form: Form) -> Handler:
    """Wait for everything."""

    def call(warp: Warp, _split: Split, _mask: Mask) -> None:
        found = copies.groups(warp, _GROUP)
        found.commit()
        found.finish(warp, 0)

    return call


@control("cp.async.mbarrier.arrive", "9.7.13.15.15", operands=("@shared",), types=("b64",),
         flags=("noinc", "shared", "shared::cta"))  # fmt: skip
def arrive(form: Form) -> Handler:
    """Arrive when the copies of this thread so far are done; without `.noinc` the arrival is one
    that was added for it.
    """

    def call(warp: Warp, _split: Split, mask: Mask, at: Lanes) -> None:
        warp.cta.machine.current = warp
        targets = [mbarrier.find(warp, int(at[lane])) for lane in access.each_lane(mask)]
        if not form.has("noinc"):
            for cta, offset in targets:
                cta.mbarriers[offset] = unit.begin_async(cta.mbarriers[offset])
        agent = warp.cta.agent(("cp.async", warp.index), f"cp.async of warp {warp.index}")
        found = copies.groups(warp, _GROUP)
        before = [o for group in (*found.committed, found.open) for o in group]

        def effect() -> None:
            for operation in before:
                warp.cta.machine.engine.finish(operation)
            for cta, offset in targets:
                mbarrier.update(cta, offset, agent, unit.arrive)

        warp.cta.machine.engine.issue(form.instruction.text, warp, agent, effect, ordered=False)

    return call
