"""The barrier of a cluster (PTX ISA 9.7.13.3).

It completes when every thread of the cluster that has not exited has arrived. Each thread arrives
once, then waits; lanes of a warp may do so apart from each other, so each has its own standing.
"""

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.events import Acquire, Release, Scope
from kernelpack.emulator.machine.lanes import Lanes, Mask
from kernelpack.emulator.machine.warp import NOT_ARRIVED, Split, Wait, Warp
from kernelpack.emulator.semantics import tensor_memory
from kernelpack.emulator.semantics.table import Form, Handler, control

_SECTION = "9.7.13.3"
_FLAGS = ("aligned", "release", "relaxed", "acquire")


@control("barrier.cluster.arrive", _SECTION, flags=_FLAGS, yields=True)
def arrive(form: Form) -> Handler:
    """Arrive at the cluster's barrier."""
    relaxed = form.has("relaxed")

    def call(warp: Warp, _split: Split, mask: Mask) -> None:
        cluster = warp.cta.cluster
        _check_first(warp, mask)
        fresh = mask & (warp.arrivals != cluster.generation)
        warp.arrivals = np.where(mask, cluster.generation, warp.arrivals)
        channel = ("cluster", cluster.key, cluster.generation)
        tensor_memory.settle(warp)
        warp.cta.machine.bus.emit(Release(warp.agent, channel, relaxed, Scope.CLUSTER))
        cluster.arrive(int(np.count_nonzero(fresh)))
        warp.cta.machine.changes += 1

    return call


def _check_first(warp: Warp, mask: Mask) -> None:
    """A thread arrives once before the barrier completes, and it does when all have waited."""
    again = mask & (warp.arrivals != NOT_ARRIVED)
    if not np.count_nonzero(again):
        return
    pending = again & (warp.arrivals == warp.cta.cluster.generation)
    warp.cta.machine.misuse(
        rules.CLUSTER_BARRIER if np.count_nonzero(pending) else rules.CLUSTER_BARRIER_AGAIN,
        "barrier.cluster.arrive for the second time, with no barrier.cluster.wait in between",
        lane=int(again.argmax()),
    )


@control("barrier.cluster.wait", _SECTION, flags=_FLAGS, yields=True)
def wait(_form: Form) -> Handler:
    """Wait until every thread of the cluster that has not exited has arrived."""

    def call(warp: Warp, _split: Split, mask: Mask) -> Wait | None:
        cluster = warp.cta.cluster
        arrivals = warp.arrivals[mask]
        if np.count_nonzero(arrivals == cluster.generation):
            return _until_complete(warp)
        if np.count_nonzero(arrivals == NOT_ARRIVED):
            warp.cta.machine.misuse(
                rules.CLUSTER_BARRIER,
                "barrier.cluster.wait without an arrive before it",
                lane=int((mask & (warp.arrivals == NOT_ARRIVED)).argmax()),
            )
        _learn(warp, arrivals)
        warp.arrivals = np.where(mask, NOT_ARRIVED, warp.arrivals)
        return None

    return call


def _until_complete(warp: Warp) -> Wait:
    cluster = warp.cta.cluster
    generation = cluster.generation
    return Wait(
        "cluster barrier",
        lambda: cluster.generation != generation,
        lambda: f"cluster barrier: {cluster.arrived} of {cluster.present} threads arrived",
    )


def _learn(warp: Warp, generations: Lanes) -> None:
    """The warp knows now what was released to the generations that its lanes waited for."""
    for generation in np.unique(generations[generations != NOT_ARRIVED]).tolist():
        channel = ("cluster", warp.cta.cluster.key, generation)
        warp.cta.machine.bus.emit(Acquire(warp.agent, channel, scope=Scope.CLUSTER))
