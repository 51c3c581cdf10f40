"""A program of a few instructions that see the machine: body, launch, words expected.

`expected` is what the first words of `out` must be, or a function of them. Inputs are words that
count up from 0 unless others are given.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelpack.spec.tensormap import TensorMap

LANES = list(range(32))
WORDS = np.arange(4096, dtype=np.uint32)


@dataclass(frozen=True)
class Program:
    """One program. `tensor_map` makes a map from the addresses of `in` and `out`."""

    name: str
    body: str
    expected: Any
    threads: int = 32
    grid: int = 1
    cluster: int = 1
    inputs: np.ndarray = field(default_factory=lambda: WORDS)
    tensor_map: Callable[[int, int], TensorMap] | None = None
    target: str = "sm_100a"

    def __str__(self) -> str:
        return self.name


def store(register: str = "%r1") -> str:
    """Each thread's register to its word of `out`."""
    return f"st.global.b32 [%mine], {register};"


INIT = """
  mov.u32 %r30, bar; setp.eq.u32 %p0, %thread, 0;
  @%p0 mbarrier.init.shared.b64 [%r30], 1;
  @%p0 fence.mbarrier_init.release.cluster;
  bar.sync 0;
"""
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p15, [%r30], 0; @!%p15 bra W;"
FILL = "mov.u32 %r29, s; mad.lo.u32 %r28, %thread, 4, %r29; st.shared.b32 [%r28], %thread;"
GET = "mov.u32 %r29, s; mad.lo.u32 %r28, %thread, 4, %r29; ld.shared.b32 %r1, [%r28];"
PUT_DRAIN = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
