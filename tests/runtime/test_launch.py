"""A plan reaches the driver as it is: every number, every parameter's bytes, the right device."""

from dataclasses import replace

import pytest

from kernelpack.errors import BundleError, DriverError, ForkError, ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.runtime.driver import Driver
from kernelpack.runtime.launch import Entries, Launch, check_layout
from kernelpack.runtime.library import Functions, Image
from kernelpack.runtime.tensormap import encoder
from kernelpack.spec.launch import Dim3, Pointer, Scalar, resolve
from kernelpack.spec.params import Slot
from tests.fakes.driver import FakeCuda, FakeDevice
from tests.fakes.variants import variant

VARIANT = variant()
SIZES = {"m": 100, "n": 16, "k": 72, "g": 4, "n_active": 3, "a_dtype": 9, "out_dtype": 9}
ADDRESSES = {name: 0x10000 * i for i, name in enumerate(("c", "a", "b", "a_offsets", "expert_ids"))}
PLAN = resolve(VARIANT, SIZES, ADDRESSES)
C, M, K = 1, 5, 6  # parameters


class Bench:
    """A launch of PLAN on a device that is pretended."""

    def __init__(self, plan=PLAN, device=0, answers=None, bind=None):
        self.cuda = FakeCuda(devices=(FakeDevice(), FakeDevice()))
        self.cuda.signatures[VARIANT.entry] = VARIANT.slots
        self.driver = Driver(self.cuda)
        functions = Functions(self.driver)
        image = Image(data=b"cubin")
        function = functions.make(VARIANT, lambda: image, device)
        entries, encode = Entries(self.driver, bind), encoder(self.driver, device)
        self.launch = Launch(self.driver, entries, encode, function, plan)
        self.cuda.answers.update(answers or {})

    @property
    def launched(self):
        (launched,) = self.cuda.launches
        return launched


@pytest.fixture
def bench(bind):
    return Bench(bind=bind)


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("entry", VARIANT.entry),
        ("grid", (10, 1, 1)),
        ("block", (128, 1, 1)),
        ("cluster", (2, 1, 1)),
        ("shared_bytes", 100_000),
        ("programmatic", True),
        ("stream", 0),
    ],
)
def test_configuration(bench, field, expected):
    """The driver sees the plan's numbers."""
    bench.launch()
    assert expected == getattr(bench.launched, field)


@pytest.mark.parametrize(("index", "expected"), [(C, 0), (2, 0x20000), (M, 100), (K, 72)])
def test_parameters(bench, index, expected):
    """Pointers and scalars lie where the signature's layout puts them."""
    bench.launch()
    assert expected == bench.launched.number(index)


def test_map_parameter(bench):
    """A tensor map's parameter is what the driver encoded."""
    bench.launch()
    assert bench.launched.parameters[0].startswith(b"[9, 2, 65536, [72, 100], [144], [64, 64]")


def test_parameter_block_is_aligned(bench):
    """Tensor maps lie at multiples of 64 bytes of host memory too."""
    assert bench.launch._pointers[0] % 64 == 0


def test_patch(bench):
    """A patched parameter is in the next launch, the others stay."""
    bench.launch.patch(C, Pointer(0x7000))
    bench.launch()
    assert (bench.launched.number(C), bench.launched.number(M)) == (0x7000, 100)


def test_negative_scalar():
    """A signed scalar is packed as two's complement."""
    known = PLAN.arguments
    arguments = (*known[:M], Scalar(DType.I32, -2), known[K])
    bench = Bench(replace(PLAN, arguments=arguments))
    bench.launch()
    assert bench.launched.number(M) == 2**32 - 2


@pytest.mark.parametrize(("cluster", "programmatic"), [(Dim3(1), False), (Dim3(2), False)])
def test_attributes_are_only_those_wanted(cluster, programmatic):
    """Without a cluster and without overlap there is no attribute of it."""
    bench = Bench(replace(PLAN, cluster=cluster, programmatic=programmatic))
    bench.launch()
    assert (bench.launched.cluster, bench.launched.programmatic) == (tuple(cluster), programmatic)


def test_stream(bench):
    """A launch goes to the stream it is called with."""
    stream = bench.cuda.new_stream()
    bench.launch(stream)
    assert bench.launched.stream == stream


def test_default_stream_means_the_device(bind):
    """On a default stream the function's device is made current, and what was is put back."""
    bench = Bench(device=1, bind=bind)
    bench.cuda.stack.append(0x1000)
    bench.launch()
    assert (bench.launched.device, bench.cuda.stack) == (1, [0x1000])


def test_current_context_is_used_as_it_is(bench):
    """Where the device is current already, nothing is pushed."""
    bench.cuda.stack.append(0x1000)
    before = bench.cuda.count("cuCtxPushCurrent")
    bench.launch()
    assert bench.cuda.count("cuCtxPushCurrent") == before


def test_stream_of_another_device(bench):
    """A stream of device 1 for arguments of device 0 is refused by name, before the launch."""
    with pytest.raises(ProblemError, match=r"`stream`: belongs to device 1, .* on device 0"):
        bench.launch(bench.cuda.new_stream(1))
    assert bench.cuda.launches == []


def test_second_launch_makes_one_call(bench):
    """Launching again on the same stream asks the driver for nothing but the launch."""
    stream = bench.cuda.new_stream()
    bench.launch(stream)
    before = len(bench.cuda.calls)
    bench.launch(stream)
    assert (len(bench.cuda.calls), len(bench.cuda.launches)) == (before, 2)


@pytest.mark.parametrize("current", [[], [0x1000]])
def test_driver_refuses(current, bind):
    """An error of the launch names the call and the code, wherever the stream is."""
    bench = Bench(answers={"cuLaunchKernelEx": 701}, bind=bind)
    bench.cuda.stack.extend(current)
    with pytest.raises(DriverError, match="cuLaunchKernelEx: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"):
        bench.launch()


def test_driver_refuses_on_a_stream(bind):
    """An error of the launch on a stream is the same error."""
    bench = Bench(answers={"cuLaunchKernelEx": 701}, bind=bind)
    with pytest.raises(DriverError, match="cuLaunchKernelEx: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"):
        bench.launch(bench.cuda.new_stream())


def test_fork(bench):
    """A launch prepared before a fork is refused in the child."""
    bench.driver.is_forked = True
    with pytest.raises(ForkError):
        bench.launch()


def test_layout_of_another_signature():
    """A cubin whose parameters lie elsewhere is refused with both layouts."""
    slots = (Slot(0, 128), *VARIANT.slots[2:])
    with pytest.raises(BundleError, match=r"the cubin's parameters are 128 bytes at 0, 8 bytes at"):
        check_layout(VARIANT, slots)


def test_layout_that_fits():
    """The C ABI's own layout is accepted."""
    assert check_layout(VARIANT, VARIANT.slots) is None
