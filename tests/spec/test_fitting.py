"""How many clusters run at once where there is no driver to ask: the GPCs of a target's GPU."""

import pytest

from kernelpack.spec.arch import TARGETS, Arch
from kernelpack.spec.fitting import Cta, fitting_ctas, of_target

WHOLE = Cta(threads=384, shared_bytes=232_448, registers=168)
"""A CTA that fills a multiprocessor."""
HOPPER, BLACKWELL = Arch("sm_90a"), Arch("sm_100a")


@pytest.mark.parametrize(("ctas", "clusters"), [(1, 132), (2, 66), (4, 30), (8, 15), (16, 7)])
def test_hopper_as_measured(ctas, clusters):
    """An H200 holds so many clusters of CTAs with 200 KB and more each."""
    assert clusters == of_target(HOPPER, 132)(WHOLE, ctas)


@pytest.mark.parametrize(("ctas", "held"), [(1, 148), (2, 148), (4, 148), (8, 120), (16, 112)])
def test_blackwell_as_cutlass_reckons(ctas, held):
    """GPCs of 20 multiprocessors, and one of the 8 that are left."""
    assert held == of_target(BLACKWELL, 148)(WHOLE, ctas) * ctas


@pytest.mark.parametrize("target", TARGETS)
def test_multiprocessors(target):
    """A GPU's are those of its GPCs: 132 on Hopper, 148 on Blackwell."""
    assert Arch(target).multiprocessors == (132 if target == "sm_90a" else 148)


@pytest.mark.parametrize(
    ("cta", "of_two"),
    [
        (Cta(threads=384, shared_bytes=115_712, registers=80), 132),
        (Cta(threads=384, shared_bytes=115_713, registers=80), 66),
        (Cta(threads=1024, shared_bytes=0, registers=32), 132),
        (Cta(threads=384, shared_bytes=0, registers=168), 66),
        (Cta(threads=32, shared_bytes=0, registers=8), 32 * 66),
        (Cta(threads=1024, shared_bytes=0, registers=255), 66),
    ],
    ids=["half", "a byte more", "threads", "registers", "blocks", "registers of a bound"],
)
def test_ctas_of_a_multiprocessor(cta, of_two):
    """Shared memory with 1 KiB of the system's, threads, registers and blocks each bound them."""
    assert of_two == of_target(HOPPER, 132)(cta, 2)


@pytest.mark.parametrize(
    ("sm_count", "ctas", "clusters"),
    [
        (4, 4, 1),
        (4, 8, 0),
        (1, 2, 0),
        (20, 2, 10),
        (20, 18, 0),
        (36, 16, 2),
        (150, 18, 0),
        (150, 16, 8),
    ],
)
def test_other_gpus(sm_count, ctas, clusters):
    """A smaller GPU has the first GPCs, a larger one more of the largest; 16 CTAs are the most."""
    assert clusters == of_target(HOPPER, sm_count)(WHOLE, ctas)


@pytest.mark.parametrize(
    ("clusters", "ctas"),
    [(1, 16), (7, 16), (8, 9), (14, 8), (15, 8), (30, 4), (31, 3), (66, 2), (67, 1), (500, 1)],
)
def test_most_ctas(clusters, ctas):
    """The most CTAs of a cluster so that so many clusters run at once, and one at least."""
    whole = of_target(HOPPER, 132)
    assert ctas == fitting_ctas(lambda n: whole(WHOLE, n), clusters)
