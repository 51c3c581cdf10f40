"""Bulk copies and reductions of whole ranges of bytes (PTX ISA 9.7.9.25.4), their groups, and
`st.async` and `red.async` (9.7.9.12, 9.7.13.8).
"""

import numpy as np

from kernelpack.emulator.machine.cluster import RANK_SHIFT, Cta
from kernelpack.emulator.machine.lanes import Lanes, Mask
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.models import reduction, tma
from kernelpack.emulator.semantics import access, copies, mbarrier
from kernelpack.emulator.semantics.table import FLOATS, Form, Handler, control
from kernelpack.spec.tensormap import Element

GROUP = "cp.async.bulk"
_OFFSET = (1 << RANK_SHIFT) - 1
HINTS = ("L2::cache_hint",)
_SPACES = ("global", "shared::cta", "shared::cluster", "mbarrier::complete_tx::bytes")
ELEMENTS = {
    "u32": Element.U32,
    "s32": Element.I32,
    "u64": Element.U64,
    "s64": Element.I64,
    "b32": Element.U32,
    "b64": Element.U64,
    "f16": Element.FP16,
    "bf16": Element.BF16,
    "f32": Element.FP32,
    "f64": Element.FP64,
}


def _directions(form: Form) -> tuple[str, str]:
    """Destination and source space, as written."""
    spaces = [
        m.split("::")[0]
        for m in form.instruction.modifiers
        if m.split("::")[0] in ("global", "shared")
    ]
    if len(spaces) != 2:
        raise form.unsupported("a bulk copy names two spaces")
    return spaces[0], spaces[1]


def _copy_operands(form: Form) -> tuple[str, ...]:
    to, source = _directions(form)
    completion = ("@shared",) if to == "shared" else ()
    more = ("u16",) if form.has("multicast::cluster") else ()
    more += ("b64",) if form.has(*HINTS) else ()
    more += ("b16",) if form.has("cp_mask") else ()
    return (f"@{to}", f"@{source}", "u32", *completion, *more)


@control("cp.async.bulk", "9.7.9.25.4.1", operands=_copy_operands,
         flags=(*_SPACES, *HINTS, "bulk_group", "multicast::cluster"), yields=True)  # fmt: skip
def copy(form: Form) -> Handler:
    """Start a copy of a range of bytes between global and shared memory, or to another CTA."""
    to, source = _directions(form)
    multicast = form.has("multicast::cluster")

    def call(
        warp: Warp, _split: Split, mask: Mask, target: Lanes, origin: Lanes, size: Lanes,
        *more: Lanes,
    ) -> None:  # fmt: skip
        for lane in access.each_lane(mask):
            t, o, n = int(target[lane]), int(origin[lane]), int(size[lane])
            if to == "global":
                _to_global(form, warp, t, o, n)
            elif source == "global":
                ranks = int(more[1][lane]) if multicast else None
                _to_shared(form, warp, t, o, n, int(more[0][lane]), ranks)
            else:
                _to_peer(form, warp, t, o, n, int(more[0][lane]))

    return call


def completion_agent(cta: Cta, offset: int) -> int:
    """The agent of the copies that complete on one mbarrier."""
    return cta.agent(("copies", offset), f"the copies on mbarrier {hex(offset)}")


def bulk_agent(warp: Warp) -> int:
    """The agent of a warp's bulk groups."""
    return warp.cta.agent((GROUP, warp.index), f"the bulk copies of warp {warp.index}")


def _to_shared(
    form: Form, warp: Warp, target: int, origin: int, size: int, barrier: int, ranks: int | None
) -> None:
    offset = target & _OFFSET
    tma.check_bulk(offset, origin, size)
    own = target >> RANK_SHIFT & 0xFF
    where = [own] if ranks is None else [r for r in range(16) if ranks >> r & 1]
    ctas = [access.peer(warp, rank) for rank in where]
    at = barrier & _OFFSET
    agent = completion_agent(ctas[0], at)

    def effect() -> None:
        memory = warp.cta.machine.memory
        remote = np.arange(origin - memory.base, origin - memory.base + size)
        data = copies.read(memory, remote, agent, warp, "cp.async.bulk")
        for cta in ctas:
            shared = np.arange(offset, offset + size)
            copies.write(cta.shared, shared, data, agent, warp, "cp.async.bulk")
            mbarrier.complete(cta, at, agent, size)

    warp.cta.machine.engine.issue(form.instruction.text, warp, agent, effect, ordered=False)


def _to_peer(form: Form, warp: Warp, target: int, origin: int, size: int, barrier: int) -> None:
    tma.check_bulk(target & _OFFSET, origin & _OFFSET, size)
    cta, at = mbarrier.find(warp, barrier)
    receiver = access.peer(warp, target >> RANK_SHIFT & 0xFF)
    sender = access.peer(warp, origin >> RANK_SHIFT & 0xFF)
    agent = completion_agent(cta, at)

    def effect() -> None:
        start = origin & _OFFSET
        source = np.arange(start, start + size)
        data = copies.read(sender.shared, source, agent, warp, "cp.async.bulk")
        shared = (target & _OFFSET) + np.arange(size)
        copies.write(receiver.shared, shared, data, agent, warp, "cp.async.bulk")
        mbarrier.complete(cta, at, agent, size)

    warp.cta.machine.engine.issue(form.instruction.text, warp, agent, effect, ordered=False)


def _to_global(form: Form, warp: Warp, target: int, origin: int, size: int) -> None:
    tma.check_bulk(origin & _OFFSET, target, size)
    cta = access.peer(warp, origin >> RANK_SHIFT & 0xFF)
    agent = bulk_agent(warp)

    def effect() -> None:
        memory = warp.cta.machine.memory
        start = origin & _OFFSET
        data = copies.read(cta.shared, np.arange(start, start + size), agent, warp, "bulk store")
        remote = np.arange(target - memory.base, target - memory.base + size)
        copies.write(memory, remote, data, agent, warp, "bulk store")

    copies.in_group(warp, GROUP, form.instruction.text, agent, effect)


_OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def _reduce_operands(form: Form) -> tuple[str, ...]:
    to, source = _directions(form)
    completion = ("@shared",) if to == "shared" else ()
    return (f"@{to}", f"@{source}", "u32", *completion, *(("b64",) if form.has(*HINTS) else ()))


@control("cp.reduce.async.bulk", "9.7.9.25.4.2", operands=_reduce_operands,
         types=(*ELEMENTS,), flags=(*_SPACES, *HINTS, *_OPERATIONS, "bulk_group", "noftz"),
         yields=True)  # fmt: skip
def reduce(form: Form) -> Handler:
    """Start a reduction of a range of shared bytes into global or another CTA's memory."""
    to, _ = _directions(form)
    operation = form.one_of(_OPERATIONS)
    element = ELEMENTS[form.type]

    def call(
        warp: Warp, _split: Split, mask: Mask, target: Lanes, origin: Lanes, size: Lanes,
        *more: Lanes,
    ) -> None:  # fmt: skip
        for lane in access.each_lane(mask):
            start, stop, count = int(origin[lane]), int(target[lane]), int(size[lane])
            sender = access.peer(warp, start >> RANK_SHIFT & 0xFF)
            tma.check_bulk(start & _OFFSET, stop & _OFFSET, count)
            source = np.arange(start & _OFFSET, (start & _OFFSET) + count)
            if to == "global":
                memory = warp.cta.machine.memory
                where = np.arange(stop - memory.base, stop - memory.base + count)
                agent = bulk_agent(warp)
            else:
                receiver = access.peer(warp, stop >> RANK_SHIFT & 0xFF)
                memory, where = receiver.shared, np.arange(stop & _OFFSET, (stop & _OFFSET) + count)  # type: ignore[assignment]
                cta, at = mbarrier.find(warp, int(more[0][lane]))
                agent = completion_agent(cta, at)

            def effect(
                sender: Cta = sender, source: object = source, memory: object = memory,
                where: object = where, agent: int = agent,
            ) -> None:  # fmt: skip
                new = copies.read(sender.shared, source, agent, warp, "bulk reduction")  # type: ignore[arg-type]
                old = memory.gather(where)  # type: ignore[attr-defined]
                copies.write(
                    memory, where, reduction.reduce(operation, element, old, new), agent, warp,  # type: ignore[arg-type]
                    "bulk reduction",
                )  # fmt: skip

            if to == "global":
                copies.in_group(warp, GROUP, form.instruction.text, agent, effect)
            else:

                def whole(
                    effect: object = effect,
                    cta: Cta = cta,
                    at: int = at,
                    agent: int = agent,
                    count: int = count,
                ) -> None:
                    effect()  # type: ignore[operator]
                    mbarrier.complete(cta, at, agent, count)

                warp.cta.machine.engine.issue(
                    form.instruction.text, warp, agent, whole, ordered=False
                )

    return call


@control("cp.async.bulk.commit_group", "9.7.9.25.4.3")
def commit(_form: Form) -> Handler:
    """Close the warp's open bulk group."""
    return lambda warp, _split, _mask: copies.groups(warp, GROUP).commit()


@control("cp.async.bulk.wait_group", "9.7.9.25.4.4", operands=("#",), flags=("read",), yields=True)
def wait_group(form: Form) -> Handler:
    """Wait until at most N groups are unfinished; the store itself is over too, even for `.read`."""
    keep = form.constant(0)
    return lambda warp, _split, _mask: copies.groups(warp, GROUP).finish(warp, keep)


@control("cp.async.bulk.prefetch", "9.7.9.25.4.5", operands=("@global", "u32", "b64?"),
         flags=("L2", "global", *HINTS))  # fmt: skip
def prefetch(_form: Form) -> Handler:
    """A hint."""
    return lambda *_arguments: None


_ASYNC_FLAGS = ("weak", "mbarrier::complete_tx::bytes", "shared::cluster", "v2", "v4", "release",
                "relaxed", "cluster", "gpu", "sys", "mmio", "global", "cta")  # fmt: skip
_ASYNC_TYPES = ("b32", "b64", "u32", "u64", "s32", "s64", *FLOATS)


@control("st.async", "9.7.9.12", operands=lambda f: ("@shared", "{" + f"b{f.bits}" + "}", "@shared"),
         types=_ASYNC_TYPES, flags=_ASYNC_FLAGS)  # fmt: skip
def store_async(form: Form) -> Handler:
    """Start a store to the shared memory of a CTA of the cluster; it completes on an mbarrier."""
    return _to_cluster(form, None)


@control("red.async", "9.7.13.8", operands=lambda f: ("@shared", "{" + f"b{f.bits}" + "}", "@shared"),
         types=_ASYNC_TYPES, flags=(*_ASYNC_FLAGS, *_OPERATIONS))  # fmt: skip
def reduce_async(form: Form) -> Handler:
    """Start a reduction into the shared memory of a CTA of the cluster."""
    return _to_cluster(form, form.one_of(_OPERATIONS))


def _to_cluster(form: Form, operation: str | None) -> Handler:
    if form.has("mmio", "global"):
        raise form.unsupported(f"`{form.instruction.opcode}.async` to global memory")
    size = form.bits // 8 * form.length(1)

    def call(
        warp: Warp, _split: Split, mask: Mask, to: Lanes, values: list[Lanes], barrier: Lanes
    ) -> None:
        warp.cta.machine.current = warp
        raw = np.stack([np.ascontiguousarray(v) for v in values], 1).view(np.uint8)
        by_barrier: dict[int, list[int]] = {}
        for lane in access.each_lane(mask):
            by_barrier.setdefault(int(barrier[lane]), []).append(lane)
        for address, lanes in by_barrier.items():
            _send(form, warp, operation, address, to[lanes], raw[lanes], size)

    return call


def _send(
    form: Form, warp: Warp, operation: str | None, barrier: int, to: Lanes, raw: Lanes, size: int
) -> None:
    """The stores of one warp that complete on one mbarrier, as one operation."""
    cta, at = mbarrier.find(warp, barrier)
    agent = completion_agent(cta, at)
    if {int(address) >> RANK_SHIFT & 0xFF for address in to} != {barrier >> RANK_SHIFT & 0xFF}:
        warp.cta.machine.misuse(
            "async-store-rank", "destination and mbarrier are in different CTAs", "9.7.9.12"
        )

    def effect() -> None:
        where = ((to & np.uint64(_OFFSET)).astype(np.intp)[:, None] + np.arange(size)).reshape(-1)
        data = raw.reshape(-1)
        if operation is not None:
            element = ELEMENTS[form.type]
            for row in range(len(to)):
                part = where[row * size : (row + 1) * size]
                old = cta.shared.gather(part)
                new = reduction.reduce(operation, element, old, raw[row])
                copies.write(cta.shared, part, new, agent, warp, "red.async")
        else:
            copies.write(cta.shared, where, data, agent, warp, "st.async")
        mbarrier.complete(cta, at, agent, size * len(to))

    warp.cta.machine.engine.issue(form.instruction.text, warp, agent, effect, ordered=False)
