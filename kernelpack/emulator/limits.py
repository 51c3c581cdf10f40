"""A launch's limits: those of the module's target, and the entry's own."""

from collections.abc import Iterable
from math import prod

from kernelpack.emulator import registers
from kernelpack.emulator.faults import Fault, UnsupportedError
from kernelpack.emulator.machine.cluster import SHARED_START
from kernelpack.emulator.machine.launched import Shape, Triple
from kernelpack.emulator.machine.warp import LOCAL_LIMIT_BYTES
from kernelpack.emulator.ptx.link import Layout
from kernelpack.emulator.ptx.parser import Entry
from kernelpack.errors import KernelpackError
from kernelpack.spec.arch import Limits, Target, of_ptx
from kernelpack.spec.launch import Plan

RESIDENT_LOCAL_BYTES = 1 << 28
"""Local memory of the threads of one cluster that the emulator holds."""


def shape(entry: Entry, plan: Plan, layout: Layout) -> Shape:
    """The launch's numbers, checked against the limits and what the entry requires.

    Raises:
        Fault: a GPU would refuse this launch, or the emulator has no room for it.
        UnsupportedError: the module is for GPUs that the emulator does not know.
    """
    target = _target(entry)
    for what, hint in _refusals(entry, plan, layout, target.limits):
        raise Fault(what, where=entry.name, hint=hint)
    cluster = cluster_of(entry, plan)
    return Shape(
        grid=(plan.grid.x, plan.grid.y, plan.grid.z),
        block=(plan.block.x, plan.block.y, plan.block.z),
        cluster=cluster,
        dynamic_shared_bytes=plan.shared_bytes,
        explicit_cluster=bool(_required_cluster(entry)) or cluster != (1, 1, 1),
        registers=registers.at_start(entry, target.multiprocessor),
        target=target,
    )


def _target(entry: Entry) -> Target:
    try:
        return of_ptx(entry.target)
    except KernelpackError as error:
        raise UnsupportedError(error.what, where=entry.name, hint=error.hint) from error


def _refusals(
    entry: Entry, plan: Plan, layout: Layout, limits: Limits
) -> Iterable[tuple[str, str]]:
    """The first thing that is wrong with a launch, and what would be right."""
    yield from _sides("grid", tuple(plan.grid), limits.grid)
    yield from _threads(entry, tuple(plan.block), limits)
    yield from _clusters(entry, plan, limits)
    threads = plan.block.count * prod(cluster_of(entry, plan))
    yield from _memories(plan, layout, threads, limits.shared_bytes)


def _sides(name: str, given: tuple[int, ...], most: Triple) -> Iterable[tuple[str, str]]:
    if any(not 1 <= side <= limit for side, limit in zip(given, most, strict=True)):
        x, y, z = most
        yield f"a {name} of {given}", f"at least 1 and at most {x}, {y} and {z} along x, y and z"


def _threads(entry: Entry, block: tuple[int, ...], limits: Limits) -> Iterable[tuple[str, str]]:
    threads = prod(block)
    if min(block) >= 1 and threads > limits.threads:
        yield f"a block of {threads} threads", f"at most {limits.threads}"
    yield from _sides("block", block, limits.block)
    for name in ("reqntid", "maxntid"):
        limit = prod(entry.directives.get(name, ()))
        if name not in entry.directives or threads == limit:
            continue
        if threads > limit or name == "reqntid":
            yield f"a block of {threads} threads; `.{name}` is {limit}", ""


def _required_cluster(entry: Entry) -> tuple[int, ...]:
    """The value of `.reqnctapercluster`; empty without it."""
    fixed = entry.directives.get("reqnctapercluster")
    return (*fixed, 1, 1, 1)[:3] if fixed else ()


def cluster_of(entry: Entry, plan: Plan) -> Triple:
    """The launch's cluster, or the one that the entry requires where the launch says nothing."""
    given = (plan.cluster.x, plan.cluster.y, plan.cluster.z)
    if given != (1, 1, 1):
        return given
    x, y, z = _required_cluster(entry) or given
    return x, y, z


def _clusters(entry: Entry, plan: Plan, limits: Limits) -> Iterable[tuple[str, str]]:
    cluster, required, grid = cluster_of(entry, plan), _required_cluster(entry), tuple(plan.grid)
    yield from _sides("cluster", cluster, (limits.cluster,) * 3)
    if prod(cluster) > limits.cluster:
        yield f"a cluster of {prod(cluster)} blocks", f"at most {limits.cluster}"
    if required and cluster != required:
        yield f"a cluster of {cluster}; the kernel requires {required}", ""
    if any(sides % side for sides, side in zip(grid, cluster, strict=True)):
        yield f"a grid of {grid} is not whole clusters of {cluster}", ""


def _memories(plan: Plan, layout: Layout, threads: int, most: int) -> Iterable[tuple[str, str]]:
    own = layout.shared_end - SHARED_START
    if plan.shared_bytes < 0 or own + plan.shared_bytes > most:
        kernel = f", and {own} of the kernel's own" if own else ""
        yield f"{plan.shared_bytes} bytes of shared memory{kernel}", f"0 to {most} together"
    if layout.local_bytes > LOCAL_LIMIT_BYTES:
        yield f"{layout.local_bytes} bytes of local memory", f"at most {LOCAL_LIMIT_BYTES} a thread"
    if layout.local_bytes * threads > RESIDENT_LOCAL_BYTES:
        yield (
            f"{layout.local_bytes} bytes of local memory of {threads} threads each",
            f"the emulator holds {RESIDENT_LOCAL_BYTES} bytes of a cluster",
        )
