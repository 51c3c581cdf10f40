"""Launches in several threads at once: a run knows nothing of the others."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tests.emulator.kernel import launch

STORES = """
  mul.lo.u32 %r1, %thread, {factor}; shl.b32 %r2, %thread, 2; mov.u32 %r3, s; add.u32 %r3, %r3, %r2;
  mov.u32 %r9, 0;
L: st.shared.b32 [%r3], %r1; bar.sync 0; ld.shared.b32 %r1, [%r3]; bar.sync 0;
  add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, {turns}; @%p1 bra L;
  st.global.b32 [%mine], %r1;
"""


def run_one(factor: int) -> tuple[bool, int, bytes]:
    result, out = launch(
        STORES.format(factor=factor, turns=200 + factor), threads=128, schedule="lazy", seed=factor
    )
    return result.clean, result.steps, out[:128].tobytes()


def test_runs_in_threads_are_those_in_a_row():
    """Each has the steps and the numbers that it has alone."""
    alone = [run_one(factor) for factor in range(1, 9)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(run_one, range(1, 9)))
    assert alone == together
    assert [(np.arange(128, dtype=np.uint32) * f).tobytes() for f in range(1, 9)] == [
        words for _, _, words in together
    ]
