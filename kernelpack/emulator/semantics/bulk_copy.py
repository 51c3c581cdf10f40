"""Bulk copies and reductions of whole ranges of bytes, and their groups (PTX ISA 9.7.9.25.4)."""

import numpy as np

from kernelpack.emulator.machine.cluster import RANK_SHIFT, Cta
from kernelpack.emulator.machine.lanes import Lanes, Mask
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.models import reduction, tma
from kernelpack.emulator.semantics import access, copies, mbarrier
from kernelpack.emulator.semantics.copies import Bytewise, Doer, Groups
from kernelpack.emulator.semantics.table import Form, Handler, control, wrong
from kernelpack.spec.tensormap import Element


class BulkCopies(Groups):
    """The groups of bulk copies, of tensors and of plain bytes."""


OFFSET = (1 << RANK_SHIFT) - 1
HINT = "L2::cache_hint"
_SPACES = ("global", "shared::cta", "shared::cluster", "mbarrier::complete_tx::bytes")
OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
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


def completing(cta: Cta, offset: int, warp: Warp, what: str) -> Doer:
    """The copies that complete on one mbarrier."""
    agent = cta.agent(("copies", offset), f"the copies on mbarrier {hex(offset)}")
    return Doer(agent, warp, what)


def bulk(warp: Warp, what: str) -> Doer:
    """The bulk copies that a warp waits for by group."""
    agent = warp.cta.agent(("cp.async.bulk", warp.index), f"the bulk copies of warp {warp.index}")
    return Doer(agent, warp, what)


def cta_of(warp: Warp, address: int) -> Cta:
    """The CTA that a shared address names."""
    return access.peer(warp, address >> RANK_SHIFT & 0xFF)


def directions(form: Form) -> tuple[str, str]:
    """Destination and source space, as written."""
    heads = [modifier.split("::")[0] for modifier in form.instruction.modifiers]
    spaces = [head for head in heads if head in ("global", "shared")]
    if len(spaces) != 2:
        raise form.unsupported("a bulk copy names two spaces")
    return spaces[0], spaces[1]


def _copy_operands(form: Form) -> tuple[str, ...]:
    to, source = directions(form)
    if form.has("ignore_oob") and (to, source) != ("shared", "global"):
        raise wrong(form.instruction, "`.ignore_oob` copies from global to shared memory")
    if form.has("cp_mask") and to != "global":
        raise wrong(form.instruction, "`.cp_mask` copies to global memory")
    words = [f"@{to}", f"@{source}", "u32"]
    words += ["u32", "u32"] if form.has("ignore_oob") else []
    words += ["@shared"] if to == "shared" else []
    words += ["u16"] if form.has("multicast::cluster") else []
    words += ["b64"] if form.has(HINT) else []
    words += ["u16"] if form.has("cp_mask") else []
    return tuple(words)


_COPY_FLAGS = (*_SPACES, HINT, "bulk_group", "multicast::cluster", "ignore_oob", "cp_mask")
_CHUNK = 16
"""Bytes chosen by a mask; bytes at either end that may be ignored are fewer."""


@control("cp.async.bulk", "9.7.9.25.4.1", operands=_copy_operands, flags=_COPY_FLAGS, yields=True)
def copy(form: Form) -> Handler:
    """Start a copy of a range of bytes between global and shared memory, or to another CTA."""
    to, source = directions(form)
    multicast = form.has("multicast::cluster")

    def call(warp: Warp, _split: Split, mask: Mask, *values: Lanes) -> None:
        for lane in access.each_lane(mask):
            target, origin, size, *more = (int(value[lane]) for value in values)
            if to == "global":
                mask_of_bytes = more[-1] if form.has("cp_mask") else 0xFFFF
                _to_global(form, warp, (target, origin, size), mask_of_bytes)
            elif form.has("ignore_oob"):
                left, right, barrier, *_ = more
                _to_shared_within(form, warp, (target, origin, size), (left, right), barrier)
            elif source == "shared":
                _to_peer(form, warp, (target, origin, size), more[0])
            else:
                ranks = more[1] if multicast else 1 << (target >> RANK_SHIFT & 0xFF)
                _to_shared(form, warp, (target, origin, size), (more[0], ranks))

    return call


def _to_shared(form: Form, warp: Warp, moved: tuple[int, int, int], done: tuple[int, int]) -> None:
    """Global to shared memory of the CTAs in a mask; each one's own mbarrier completes."""
    (target, origin, size), (barrier, ranks) = moved, done
    offset, at = target & OFFSET, barrier & OFFSET
    tma.check_bulk(offset, origin, size)
    ctas = [access.peer(warp, rank) for rank in range(16) if ranks >> rank & 1]
    doer = completing(ctas[0], at, warp, "cp.async.bulk")

    def effect() -> None:
        data = copies.global_range(warp, origin, size).read(doer)
        for cta in ctas:
            copies.shared_range(cta, offset, size).write(data, doer)
            mbarrier.complete(cta, at, doer, size)

    copies.alone(form.instruction.text, doer, effect)


def _to_shared_within(
    form: Form, warp: Warp, moved: tuple[int, int, int], ignored: tuple[int, int], barrier: int
) -> None:
    """Global to shared memory, but for bytes at both ends: what becomes of these is not said.

    They are not read, so they may lie outside an allocation. They count for the mbarrier.
    """
    (target, origin, size), (left, right) = moved, ignored
    offset, at = target & OFFSET, barrier & OFFSET
    tma.check_bulk(offset, origin, size)
    tma.check_ignored(left, right, size)
    doer = completing(warp.cta, at, warp, "cp.async.bulk")

    def effect() -> None:
        data = np.full(size, 0xFF, np.uint8)
        inner = copies.global_range(warp, origin + left, size - left - right)
        data[left : size - right] = inner.read(doer)
        copies.shared_range(warp.cta, offset, size).write(data, doer)
        mbarrier.complete(warp.cta, at, doer, size)

    copies.alone(form.instruction.text, doer, effect)


def _to_peer(form: Form, warp: Warp, moved: tuple[int, int, int], barrier: int) -> None:
    """Shared memory to that of another CTA, whose mbarrier completes."""
    target, origin, size = moved
    tma.check_bulk(target & OFFSET, origin & OFFSET, size)
    cta, at = mbarrier.find(warp, barrier)
    source = copies.shared_range(cta_of(warp, origin), origin & OFFSET, size)
    shared = copies.shared_range(cta_of(warp, target), target & OFFSET, size)
    doer = completing(cta, at, warp, "cp.async.bulk")

    def effect() -> None:
        shared.write(source.read(doer), doer)
        mbarrier.complete(cta, at, doer, size)

    copies.alone(form.instruction.text, doer, effect)


def _to_global(form: Form, warp: Warp, moved: tuple[int, int, int], chosen: int) -> None:
    """Shared to global memory, in the warp's bulk group: of every 16 bytes those of a mask."""
    target, origin, size = moved
    tma.check_bulk(origin & OFFSET, target, size)
    source = copies.shared_range(cta_of(warp, origin), origin & OFFSET, size)
    doer = bulk(warp, "a bulk store")
    kept = np.flatnonzero(chosen >> np.arange(size) % _CHUNK & 1)

    def effect() -> None:
        to = copies.global_range(warp, target, size)
        if len(kept) == size:
            to.write(source.read(doer), doer)
        else:
            to.at(kept).write(source.at(kept).read(doer), doer)

    copies.in_group(BulkCopies, form.instruction.text, doer, effect)


def _reduce_operands(form: Form) -> tuple[str, ...]:
    to, source = directions(form)
    words = [f"@{to}", f"@{source}", "u32"]
    words += ["@shared"] if to == "shared" else []
    return (*words, *(("b64",) if form.has(HINT) else ()))


_REDUCE_FLAGS = (*_SPACES, HINT, *OPERATIONS, "bulk_group", "noftz")


@control(
    "cp.reduce.async.bulk",
    "9.7.9.25.4.2",
    operands=_reduce_operands,
    types=tuple(ELEMENTS),
    flags=_REDUCE_FLAGS,
    yields=True,
)
def reduce(form: Form) -> Handler:
    """Start a reduction of a range of shared bytes into global or another CTA's memory."""
    to, _ = directions(form)

    def call(warp: Warp, _split: Split, mask: Mask, *values: Lanes) -> None:
        for lane in access.each_lane(mask):
            target, origin, size, *more = (int(value[lane]) for value in values)
            tma.check_bulk(origin & OFFSET, target & OFFSET, size)
            source = copies.shared_range(cta_of(warp, origin), origin & OFFSET, size)
            if to == "global":
                _reduce_to_global(form, source, copies.global_range(warp, target, size), warp)
            else:
                shared = copies.shared_range(cta_of(warp, target), target & OFFSET, size)
                _reduce_to_peer(form, source, shared, mbarrier.find(warp, more[0]), warp)

    return call


def combine(form: Form, source: Bytewise, target: Bytewise, doer: Doer) -> None:
    """Reduce bytes into others."""
    new = source.read(doer)
    old = target.memory.gather(target.offsets)
    operation = form.one_of(OPERATIONS)
    target.write(reduction.reduce(operation, ELEMENTS[form.type], old, new), doer)


def _reduce_to_global(form: Form, source: Bytewise, target: Bytewise, warp: Warp) -> None:
    doer = bulk(warp, "a bulk reduction")
    text = form.instruction.text
    copies.in_group(BulkCopies, text, doer, lambda: combine(form, source, target, doer))


def _reduce_to_peer(
    form: Form, source: Bytewise, target: Bytewise, barrier: tuple[Cta, int], warp: Warp
) -> None:
    cta, at = barrier
    doer = completing(cta, at, warp, "a bulk reduction")

    def effect() -> None:
        combine(form, source, target, doer)
        mbarrier.complete(cta, at, doer, len(source.offsets))

    copies.alone(form.instruction.text, doer, effect)


@control("cp.async.bulk.commit_group", "9.7.9.27.2.1")
def commit(_form: Form) -> Handler:
    """Close the open bulk group."""
    return lambda warp, _split, mask: copies.groups(warp, BulkCopies).commit(mask)


@control("cp.async.bulk.wait_group", "9.7.9.27.2.2", operands=("#",), flags=("read",), yields=True)
def wait_group(form: Form) -> Handler:
    """Wait until at most N groups are unfinished; their writes are done too, even for `.read`."""
    keep = form.constant(0)
    return lambda warp, _split, mask: copies.groups(warp, BulkCopies).finish(warp, keep, mask)


_PREFETCH_FLAGS = ("L2", "global", HINT)


@control(
    "cp.async.bulk.prefetch",
    "9.7.9.25.4.3",
    operands=("@global", "u32", "b64?"),
    flags=_PREFETCH_FLAGS,
)
def prefetch(_form: Form) -> Handler:
    """A hint."""
    return lambda *_arguments: None
