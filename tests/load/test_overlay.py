"""Files of measured times: written, read, refused where they are of something else."""

import json
from dataclasses import replace

import pytest

import kernelpack
from kernelpack.bundle.reader import open_entries
from kernelpack.errors import BundleError
from kernelpack.load.load import load
from kernelpack.load.overlay import image_of, overlay_text, read_overlay
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.runtime.driver import Driver
from kernelpack.spec.tuned import Measured, Overlay, TunedDevice, TunedKernel
from tests.device import twice
from tests.fakes.driver import FakeCuda
from tests.verify import small

B200 = TunedDevice(name="NVIDIA B200", capability=(10, 0), sm_count=148)
FAST, SLOW = (small.variant(tile).id for tile in (64, 32))


@pytest.fixture
def bundle(tmp_path):
    return small.bundle(tmp_path / "x.kpk")


def overlay(bundle, **changes):
    """Times of the small kernel: tile 64, which costs more, is the faster one for n = 64."""
    held = open_entries(bundle)
    images = {variant.id: image_of(variant, held) for variant in held.variants()}
    problem = Measured(sizes={"n": 64}, nanoseconds={SLOW: 900, FAST: 700})
    kernel = TunedKernel(kernel="twice", images=images, problems=(problem,))
    return replace(Overlay(device=B200, driver="a driver", kernels=(kernel,)), **changes)


def of_kernel(bundle, **changes):
    """The same with another kernel's part."""
    made = overlay(bundle)
    return replace(made, kernels=(replace(made.kernels[0], **changes),))


@pytest.fixture
def written(bundle, tmp_path):
    """Write an overlay; its path."""

    def write(made=None):
        path = tmp_path / "tuned.json"
        path.write_text(overlay_text(made or overlay(bundle)), encoding="utf-8")
        return path

    return write


def driver(cuda=None):
    return Driver(cuda or twice.Twice())


def chosen(library, n, device=0):
    return library.select("twice", {"n": n}, device, range(1, 2)).id


def test_round_trip(bundle, written):
    """What is written is read."""
    assert read_overlay(written()) == overlay(bundle)


def test_load(bundle, written):
    """The variant that was faster is chosen where it was measured, and costs choose elsewhere."""
    library = load(bundle, driver=driver(), tuned=written())
    assert [chosen(library, n) for n in (64, 100, 500)] == [FAST, SLOW, SLOW]
    assert chosen(load(bundle, driver=driver()), 64) == SLOW


def test_the_package_itself(bundle, written):
    """`kernelpack.load`, which is a package too, takes the file."""
    library = kernelpack.load(bundle, driver=driver(), tuned=written())
    assert chosen(library, 64) == FAST


def test_only_on_its_device(bundle, written):
    """Where a process sees two kinds of GPU, each chooses by what is known of it."""
    other = replace(twice.B200, sm_count=140)
    cuda = twice.Twice()
    cuda.devices = (other, twice.B200)
    library = load(bundle, driver=driver(cuda), tuned=str(written()))
    assert [chosen(library, 64, device) for device in (0, 1)] == [SLOW, FAST]


def test_emulated(bundle, written):
    """The emulator chooses as the device does that it pretends."""
    library = EmulatedLibrary(bundle, tuned=written())
    assert library.select("twice", {"n": 64}, range(1, 2)).id == FAST


def test_emulated_of_another_size(bundle, written):
    """Times of another device than the pretended one are refused; the error names both."""
    library = EmulatedLibrary(bundle, tuned=written(), sm_count=20)
    with pytest.raises(BundleError, match=r"NVIDIA B200 .*; here is sm_100a of 20 multiproc"):
        library.select("twice", {"n": 64}, range(1, 2))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "NVIDIA GB200"}, r"was measured on NVIDIA GB200 .* device 0 \(NVIDIA B200"),
        ({"sm_count": 160}, "160 multiprocessors"),
        ({"capability": (10, 3)}, "compute capability 10.3, 148"),
    ],
    ids=["name", "sm_count", "capability"],
)
def test_another_device(bundle, written, changes, words):
    """Times of a device that is not there are refused by its name."""
    made = overlay(bundle, device=replace(B200, **changes))
    if "capability" in changes:
        made = replace(made, kernels=())
    with pytest.raises(BundleError, match=words):
        load(bundle, driver=driver(), tuned=written(made))


def test_no_device(bundle, written):
    """Nor where there is no GPU at all."""
    with pytest.raises(BundleError, match="here is no GPU"):
        load(bundle, driver=driver(FakeCuda(devices=())), tuned=written())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"images": {FAST: "00", SLOW: "00"}}, f"holds other machine code of `{FAST}`"),
        ({"images": {"twice[gone]": "00"}}, "holds no `twice[gone]`"),
        ({"images": {}, "problems": ()}, f"`{SLOW}` of "),
        ({"kernel": "thrice"}, f"holds no `{SLOW}`"),
        ({"problems": (Measured(sizes={"m": 1}, nanoseconds={}),)}, "has other sizes than n"),
    ],
    ids=["changed", "gone", "new", "no kernel", "sizes"],
)
def test_stale(bundle, written, changes, words):
    """Times of other machine code are refused by the variant's name, on a GPU and emulated."""
    path = written(of_kernel(bundle, **changes))
    with pytest.raises(BundleError) as refused:
        load(bundle, driver=driver(), tuned=path)
    assert str(refused.value).startswith(f"{path}: is stale: ")
    assert words in str(refused.value)
    with pytest.raises(BundleError, match="is stale"):
        EmulatedLibrary(bundle, tuned=path)


def changed(text, *keys, value):
    """A file in which one value is another."""
    whole = json.loads(text)
    place = whole
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return json.dumps(whole)


BROKEN = {
    "empty": lambda _: "",
    "no JSON": lambda _: "{",
    "a list": lambda _: "[]",
    "a number": lambda _: "7",
    "format": lambda text: changed(text, "format", value=2),
    "no device": lambda text: changed(text, "device", value=None),
    "capability": lambda text: changed(text, "device", "capability", value=[9]),
    "name": lambda text: changed(text, "device", "name", value=7),
    "negative": lambda text: changed(text, "device", "sm_count", value=-1),
    "kernels": lambda text: changed(text, "kernels", value={"a": 1}),
    "times": lambda text: changed(
        text, "kernels", 0, "problems", 0, "nanoseconds", value=[1, 2, 3]
    ),
    "a fraction": lambda text: changed(
        text, "kernels", 0, "problems", 0, "nanoseconds", value=[1.5, 2]
    ),
    "a truth": lambda text: changed(text, "kernels", 0, "problems", 0, "sizes", "n", value=True),
    "too large": lambda text: changed(text, "kernels", 0, "problems", 0, "sizes", "n", value=2**63),
    "deep": lambda _: "[" * 100_000,
}


@pytest.mark.parametrize("name", BROKEN)
def test_no_overlay(bundle, written, name):
    """A file of another form is refused whole; `kernelpack tune` is named."""
    path = written()
    path.write_text(BROKEN[name](path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(BundleError, match="no file of measured times that this version reads"):
        read_overlay(path)


def test_no_file(bundle, tmp_path):
    """A missing file is reported."""
    with pytest.raises(BundleError, match="cannot be read: No such file"):
        load(bundle, driver=driver(), tuned=tmp_path / "none.json")
