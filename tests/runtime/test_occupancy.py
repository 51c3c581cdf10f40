"""How many clusters fit: the driver is asked, once for each kernel, device, cluster and CTA."""

import pytest

from kernelpack.errors import DriverError
from kernelpack.runtime.driver import Driver
from kernelpack.runtime.library import Functions, Image
from kernelpack.runtime.occupancy import INVALID_CLUSTER_SIZE, Occupancy
from kernelpack.spec.fitting import Cta
from tests.fakes.driver import FakeCuda, FakeDevice
from tests.fakes.variants import variant

CTA = Cta(threads=128, shared_bytes=100_000, registers=168)
SMALL = Cta(threads=128, shared_bytes=50_000, registers=168)
TWO = (FakeDevice(), FakeDevice(sm_count=16))


class Bench:
    """A driver that is pretended, functions of it, and what it says of them."""

    def __init__(self, **given):
        self.cuda = FakeCuda(devices=TWO, **given)
        driver = Driver(self.cuda)
        self._functions, self._occupancy = Functions(driver), Occupancy(driver)

    def clusters(self, ctas, cta=CTA, *, device=0, tile=64):
        made = variant(tile=tile)
        function = self._functions.make(made, lambda: Image(data=b"code"), device)
        return self._occupancy.clusters(function, cta, ctas)


@pytest.mark.parametrize(("ctas", "clusters"), [(1, 132), (2, 66), (4, 33), (16, 8)])
def test_what_the_driver_says(ctas, clusters):
    """The driver is given the CTAs of a cluster, and the threads and shared memory of each."""
    bench = Bench()
    assert clusters == bench.clusters(ctas)
    assert bench.cuda.asked == [(ctas, 128, 100_000)]


def test_whole_clusters_of_a_gpc():
    """7 GPCs of 18 multiprocessors hold 28 clusters of four."""
    assert Bench(gpc=18).clusters(4) == 28


@pytest.mark.parametrize(
    ("again", "asked"),
    [
        ({}, 1),
        ({"ctas": 4}, 2),
        ({"cta": SMALL}, 2),
        ({"device": 1}, 2),
        ({"tile": 128}, 2),
    ],
)
def test_asked_once(again, asked):
    """The same kernel, device, cluster and CTA is asked about once; another of them, again."""
    bench = Bench()
    bench.clusters(2)
    bench.clusters(**{"ctas": 2} | again)
    assert len(bench.cuda.asked) == asked


def test_a_cluster_that_can_never_be():
    """The driver's word for a size that the kernel cannot have means none."""
    answers = {"cuOccupancyMaxActiveClusters": INVALID_CLUSTER_SIZE}
    assert Bench(answers=answers).clusters(16) == 0


def test_more_ctas_than_a_cluster_has():
    """The driver need not be asked."""
    bench = Bench()
    assert (bench.clusters(17), bench.cuda.asked) == (0, [])


def test_an_error_of_the_driver():
    """Any other answer is an error that names the call."""
    answers = {"cuOccupancyMaxActiveClusters": 719}
    with pytest.raises(DriverError, match=r"^cuOccupancyMaxActiveClusters: .* \(719\)"):
        Bench(answers=answers).clusters(2)
