"""Kernels ready to launch: chosen, loaded, refused by name."""

import builtins
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from threading import Barrier

import numpy as np
import pytest

from kernelpack.errors import BundleError, CaptureError, ProblemError, SelectionError
from kernelpack.load.load import load
from kernelpack.runtime.driver import Driver
from kernelpack.spec.expr import ONE, parse
from kernelpack.spec.params import layout
from tests.fakes.bundles import entry, write_bundle
from tests.fakes.driver import FakeCuda, FakeDevice
from tests.fakes.variants import NUMBERS, variant
from tests.refusals import ADDRESSES, ERRORS, REFUSALS, SIZES

KERNEL = "lora_shrink_qkv"
HOPPER, BLACKWELL, FAMILY = variant(), variant(arch="sm_100a"), variant(arch="sm_100f")
WIDE = variant(tile=16)
CAPABILITIES = ((9, 0), (10, 0), (10, 1), (10, 3), (11, 0), (12, 0))
THREADS = 8


@pytest.fixture
def open_library(tmp_path):
    """Open a bundle of entries or variants on a driver that is pretended."""

    def made(*entries, cuda=None, abi=None):
        path = write_bundle(tmp_path / "x.kpk", entries or (HOPPER, BLACKWELL))
        cuda = cuda or FakeCuda()
        cuda.signatures.update({HOPPER.entry: HOPPER.slots})
        return load(path, driver=Driver(cuda)), cuda

    return made


def test_select(open_library):
    """The variant of least cost for the device is taken."""
    library, _ = open_library(HOPPER, WIDE, BLACKWELL)
    assert library.select(KERNEL, {**SIZES, "m": 16}, 0) == WIDE


def test_select_is_remembered(open_library):
    """The same problem again gives the same object, without a search."""
    library, _ = open_library()
    assert library.select(KERNEL, SIZES, 0) is library.select(KERNEL, dict(SIZES), 0)


def test_sizes(open_library):
    """Expressions may use the device's multiprocessors."""
    library, _ = open_library()
    assert library.sizes(SIZES, 0)["sm_count"] == 132


def test_clusters_that_do_not_fit(open_library):
    """A launch of which no cluster fits on the device is refused by name, and nothing starts."""
    library, cuda = open_library(cuda=FakeCuda(gpc=1))
    with pytest.raises(ProblemError, match="no cluster of 2 CTAs, of 128 threads") as error:
        library.pack(HOPPER, SIZES, ADDRESSES, 0)
    assert (error.value.where, cuda.launches) == (HOPPER.id, [])


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(tmp_path, name):
    """A call is refused in the words of the table that C++ and C share."""
    row = REFUSALS[name]
    with pytest.raises(ERRORS[row.status]) as error:
        call(row.bundle(tmp_path), row.trust(tmp_path), row.kernel, *row.given(), row.numbers)
    assert row.says in str(error.value)


def call(bundle, key, kernel, sizes, addresses, numbers):
    """A call from the bundle's file to a packed launch."""
    cuda = FakeCuda(signatures={HOPPER.entry: HOPPER.slots})
    library = load(bundle, driver=Driver(cuda), trust=key)
    library.pack(library.select(kernel, sizes, 0), {**sizes, **numbers}, addresses, 0)


def test_a_size_that_no_call_was_chosen_for(open_library):
    """A call that was chosen otherwise must keep the same rules when it is packed."""
    library, cuda = open_library()
    for sizes in ({**SIZES, "m": -1}, {**SIZES, "g": -1}):
        with pytest.raises(ProblemError, match="must be at least 0, not -1"):
            library.pack(HOPPER, sizes, ADDRESSES, 0)
    assert cuda.launches == []


def test_a_variant_that_does_not_serve(open_library):
    """A variant is checked against the problem where it is packed too, whoever chose it."""
    library, _ = open_library(HOPPER, variant(out="fp32"))
    with pytest.raises(SelectionError, match="no variant of lora_shrink_qkv serves m=100") as error:
        library.pack(HOPPER, {**SIZES, "out_dtype": 10}, ADDRESSES, 0)
    assert "on device 0" in error.value.where


def test_an_argument_of_no_elements_may_lie_nowhere(open_library):
    """Without groups their adapters have no address."""
    library, _ = open_library()
    assert library.pack(HOPPER, {**SIZES, "n_active": 0}, {**ADDRESSES, "expert_ids": 0}, 0)


def test_the_driver_is_asked_once(open_library):
    """How many clusters fit is asked once, whatever the problem."""
    library, cuda = open_library()
    for m in (1, 100, 200):
        library.pack(HOPPER, {**SIZES, "m": m}, ADDRESSES, 0)()
    assert (cuda.asked, len(cuda.launches)) == ([(2, 128, 100_000)], 3)


def test_as_many_clusters_as_fit(open_library):
    """A grid follows the device: 7 GPCs of 18 multiprocessors hold 28 clusters of four."""
    asking = replace(
        HOPPER,
        launch=replace(
            HOPPER.launch,
            grid=(parse("4 * fitting_clusters(4)"), ONE, ONE),
            cluster=(parse("4"), ONE, ONE),
        ),
    )
    library, cuda = open_library(asking, cuda=FakeCuda(gpc=18))
    library.pack(asking, SIZES, ADDRESSES, 0)()
    assert (cuda.launches[0].grid, cuda.launches[0].cluster) == ((112, 1, 1), (4, 1, 1))


@pytest.mark.parametrize(
    ("entries", "served"),
    [
        ((BLACKWELL,), (False, True, False, False, False, False)),
        ((FAMILY,), (False, True, False, True, False, False)),
        ((HOPPER, FAMILY), (True, True, False, True, False, False)),
    ],
)
def test_family_table_decides(open_library, entries, served):
    """Which devices a bundle serves is the table's word, not the major's."""
    devices = tuple(FakeDevice(capability=capability) for capability in CAPABILITIES)
    library, _ = open_library(*entries, cuda=FakeCuda(devices=devices))
    assert served == tuple(is_served(library, ordinal) for ordinal in range(len(devices)))


def is_served(library, ordinal):
    try:
        return bool(library.select(KERNEL, SIZES, ordinal))
    except SelectionError:
        return False


@pytest.mark.parametrize(
    "part",
    [
        r"device 1 \(NVIDIA GB10, compute capability 12.1\)",
        "driver of CUDA 13.0",
        r"k=72",
        r"sm_90a runs on compute capability 9.0 only: lora_shrink_qkv\[arch=sm_90a",
        r"sm_100a runs on compute capability 10.0 only: lora_shrink_qkv\[arch=sm_100a",
    ],
)
def test_refusal(open_library, part):
    """A refusal names the device, the driver, the problem, every candidate and why it lost."""
    devices = (FakeDevice(), FakeDevice(name="NVIDIA GB10", capability=(12, 1)))
    library, _ = open_library(cuda=FakeCuda(devices=devices))
    with pytest.raises(SelectionError, match=part):
        library.select(KERNEL, SIZES, 1)


def test_refusal_leaves_the_process_alive(open_library):
    """After a refusal other problems are served."""
    library, _ = open_library()
    with pytest.raises(SelectionError, match="k must be a multiple of 8"):
        library.select(KERNEL, {**SIZES, "k": 73}, 0)
    assert library.select(KERNEL, SIZES, 0) == HOPPER


def test_unknown_kernel(open_library):
    """A kernel the bundle lacks is an error that lists what it holds."""
    library, _ = open_library()
    with pytest.raises(SelectionError, match="holds no kernel `x`\nhint: it holds: lora_shrink"):
        library.select("x", SIZES, 0)


@pytest.mark.parametrize("abis", [range(1, 3), None])
def test_known_abi(open_library, abis):
    """A kernel whose ABI the caller knows is taken."""
    library, _ = open_library(variant(abi=2))
    assert library.select(KERNEL, SIZES, 0, abis).abi == 2


def test_unknown_abi(open_library):
    """A kernel of a later ABI is refused when it is asked for, with both numbers."""
    library, _ = open_library(variant(abi=3))
    with pytest.raises(BundleError, match="kernel ABI 3, this version calls 1, 2"):
        library.select(KERNEL, SIZES, 0, range(1, 3))


def test_function(open_library):
    """A function is the bundle's machine code, loaded once."""
    library, cuda = open_library()
    assert library.function(HOPPER, 0) is library.function(HOPPER, 0)
    assert list(cuda.images.values()) == [f"cubin of {HOPPER.id}".encode()]


def test_function_the_driver_refuses(open_library):
    """What fails only when the kernel is asked for is a refusal with every candidate."""
    library, cuda = open_library(HOPPER, WIDE, BLACKWELL)
    cuda.answers["cuLibraryGetKernel"] = 500
    with pytest.raises(SelectionError) as caught:
        library.function(HOPPER, 0)
    assert [v.id in caught.value.hint for v in (HOPPER, WIDE, BLACKWELL)] == [True] * 3


def test_parameters_elsewhere(open_library, monkeypatch):
    """A cubin whose parameters are not where the signature has them is refused, not loaded."""
    library, cuda = open_library()
    slots = layout(HOPPER.params[1:] + HOPPER.params[:1])
    monkeypatch.setattr(library.bundle, "slots", lambda _: slots)
    with pytest.raises(BundleError, match="the cubin's parameters are 8 bytes at 0"):
        library.function(HOPPER, 0)
    assert cuda.images == {}


def test_damaged_machine_code(open_library, tmp_path):
    """A damaged image is refused by its variant's name; the other kernels stay usable."""
    image = Random(0).randbytes(4096)
    library, cuda = open_library(entry(HOPPER, image=image), WIDE)
    path = tmp_path / "x.kpk"
    data = bytearray(path.read_bytes())
    data[data.index(image[1000:2000])] ^= 1
    path.write_bytes(data)
    library = load(path, driver=Driver(cuda))
    with pytest.raises(BundleError, match=r"lora_shrink_qkv\[arch=sm_90a"):
        library.function(HOPPER, 0)
    assert library.function(WIDE, 0).variant == WIDE


def test_first_use_in_a_capture(open_library):
    """First use in a capture loads nothing and says what to call first."""
    library, cuda = open_library()
    stream = cuda.new_stream(capturing=True)
    with pytest.raises(CaptureError, match=r"call `library.preload\(device=0\)` before"):
        library.pack(HOPPER, SIZES, ADDRESSES, 0, stream=stream)
    assert cuda.count("cuLibraryLoadData") == 0


def test_capture_after_preload(open_library):
    """After preload the same launch is recorded, and closing unloads nothing."""
    library, cuda = open_library()
    library.preload(device=0)
    stream = cuda.new_stream(capturing=True)
    library.pack(HOPPER, SIZES, ADDRESSES, 0, stream=stream)(stream)
    library.close()
    assert ([launch.captured for launch in cuda.launches], len(cuda.images)) == ([True], 1)


def test_load_refused_by_a_capture_elsewhere(open_library):
    """A load that the driver refuses because of a capture says preload, too."""
    library, cuda = open_library()
    cuda.answers["cuLibraryLoadData"] = 900
    with pytest.raises(CaptureError, match="preload"):
        library.function(HOPPER, 0)


@pytest.mark.parametrize(("kernel", "loaded"), [(None, 2), (KERNEL, 1)])
def test_preload(open_library, kernel, loaded):
    """Preloading takes what runs on the device, all of it or one kernel's."""
    library, cuda = open_library(HOPPER, BLACKWELL, variant(kernel="other"))
    assert loaded == library.preload(kernel, device=0)
    assert loaded == cuda.count("cuLibraryLoadData")


@pytest.mark.parametrize(
    ("entries", "kernel", "says"),
    [
        ((BLACKWELL,), None, "the bundle holds no kernel for this device"),
        ((BLACKWELL,), KERNEL, "the bundle holds no kernel `lora_shrink_qkv` for this device"),
        ((HOPPER,), "other", "the bundle holds no kernel `other` for this device"),
    ],
)
def test_preload_of_nothing(open_library, entries, kernel, says):
    """Where nothing runs on the device, or of that name, whoever preloads learns of it then."""
    library, _ = open_library(*entries)
    with pytest.raises(SelectionError, match=says) as error:
        library.preload(kernel, device=0)
    assert "on device 0" in error.value.where
    assert error.value.hint == f"it is built for: {entries[0].arch}"


def test_two_devices(open_library):
    """Two devices, eight threads each: one load, attributes once a device, the right device."""
    cuda = FakeCuda(devices=(FakeDevice(), FakeDevice()))
    library, _ = open_library(cuda=cuda)
    streams = [cuda.new_stream(i % 2) for i in range(2 * THREADS)]
    gate = Barrier(2 * THREADS)

    def use(number):
        gate.wait()
        stream = streams[number]
        library.pack(HOPPER, SIZES, ADDRESSES, number % 2, stream=stream)(stream)

    with ThreadPoolExecutor(2 * THREADS) as pool:
        list(pool.map(use, range(2 * THREADS)))
    assert (cuda.count("cuLibraryLoadData"), cuda.count("cuKernelSetAttribute")) == (1, 2)
    assert {(launch.stream, launch.device) for launch in cuda.launches} == {
        (stream, i % 2) for i, stream in enumerate(streams)
    }


def test_stream_of_another_device(open_library):
    """A stream of device 0 for arrays of device 1 is refused by name."""
    library, cuda = open_library(cuda=FakeCuda(devices=(FakeDevice(), FakeDevice())))
    with pytest.raises(ProblemError, match="`stream`: belongs to device 0"):
        library.check_stream(cuda.new_stream(0), 1)


def test_closed(open_library):
    """A closed library launches what is loaded and loads no more."""
    library, _ = open_library(HOPPER, WIDE)
    library.function(HOPPER, 0)
    library.close()
    assert library.function(HOPPER, 0).variant == HOPPER
    with pytest.raises(BundleError, match="the library is closed"):
        library.function(WIDE, 0)


def test_unload(open_library):
    """Unloading takes the machine code out of the driver."""
    library, cuda = open_library()
    library.preload(device=0)
    library.unload()
    assert cuda.images == {}


def test_devices(open_library):
    """Every GPU that the process sees is described."""
    library, _ = open_library(cuda=FakeCuda(devices=(FakeDevice(), FakeDevice())))
    assert [device.ordinal for device in library.devices()] == [0, 1]


def test_needs_no_place_to_write(open_library, monkeypatch):
    """Choosing, loading and launching write nowhere and connect to nobody."""
    library, cuda = open_library()
    for variable in ("HOME", "TMPDIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(builtins, "open", None)
    monkeypatch.setattr(socket, "socket", None)
    library.pack(library.select(KERNEL, SIZES, 0), SIZES, ADDRESSES, 0)()
    assert len(cuda.launches) == 1


@pytest.mark.parametrize(
    ("sizes", "addresses", "what"),
    [
        ({"m": [100]}, {}, "`m`: must be a number, not a list"),
        ({"m": 100.0}, {}, "`m`: must be an integer, not 100.0"),
        ({}, {"a": [0x20000]}, "`a`: must be a number, not a list"),
        ({}, {"a": "0x20000"}, "`a`: must be a device address, not a str"),
        ({}, {"a": 131072.0}, "`a`: must be a device address, not a float"),
    ],
)
def test_what_is_no_number(open_library, sizes, addresses, what):
    """What is not an integer is refused by name, also after an equal one that is."""
    library, cuda = open_library()
    library.pack(library.select(KERNEL, SIZES, 0), SIZES, ADDRESSES, 0)
    with pytest.raises(ProblemError) as error:
        library.pack(HOPPER, {**SIZES, **sizes}, {**ADDRESSES, **addresses}, 0)
    assert what in str(error.value)
    if sizes:
        with pytest.raises(ProblemError, match=what):
            library.select(KERNEL, {**SIZES, **sizes}, 0)
    assert cuda.launches == []


def test_zeros_are_told_apart(open_library):
    """A number that is -0.0 reaches the kernel as it is, also after 0.0."""
    made = variant(numbers=NUMBERS)
    library, cuda = open_library(made)
    cuda.signatures[made.entry] = made.slots
    for eps in (0.0, -0.0, 0, np.float32(-0.0)):
        library.pack(made, {**SIZES, "eps": eps}, ADDRESSES, 0)()
    assert [launch.number(7) for launch in cuda.launches] == [0, 0x8000, 0, 0x8000]
