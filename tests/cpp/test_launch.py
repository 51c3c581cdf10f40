"""A plan reaches libcuda as Python's does: through a stand-in that records what it is asked."""

import struct
from functools import partial
from itertools import islice, product
from math import inf
from random import Random

import pytest

from kernelpack.bundle.joined import Joined
from kernelpack.bundle.provenance import floor
from kernelpack.bundle.reader import open_bundle
from kernelpack.errors import BundleError, KernelpackError
from kernelpack.spec.launch import Pointer, Scalar, resolve
from kernelpack.spec.select import select
from tests.cpp.cases import STEMS, case
from tests.cpp.compiler import HERE, SANITIZE, ask, compile_program, said, sizes_of, written
from tests.cpp.test_plans import numbers
from tests.fakes.variants import NUMBERS, variant
from tests.refusals import ADDRESSES, SIZES

KERNEL = "lora_shrink_qkv"
DEVICES = (((9, 0), 132), ((10, 0), 148))
VARIANT = variant()
LAUNCHES = 1000  # of each kernel
MOST_CALLS = 60  # that one use makes
CODES = (1, 2, 3, 100, 101, 200, 201, 209, 400, 700, 719, 900, 906, 998)
ANSWERS = {("cuStreamIsCapturing", 906): "while the stream is captured"}
"""What is not an error but says something: a capture of another stream forbids to ask."""
STREAM, OF_ANOTHER_DEVICE, CAPTURED = 0x10, 0x110, 0x11


@pytest.fixture(scope="session")
def launch(programs):
    return compile_program(HERE / "launch.cpp", programs / "launch", *SANITIZE)


@pytest.fixture
def bundle(tmp_path):
    """One variant for each of two types, for an H100."""
    return written(tmp_path / "x.kpk", [VARIANT, variant(out="fp32")])


@pytest.fixture
def told(launch, libcuda, bundle):
    """Orders in; the stand-in's calls and the messages of each out."""

    def run(*orders):
        text = "\n".join(ask(launch, libcuda, bundle, lines=orders))
        return [part.strip().split("\n") for part in f"\n{text}".split("\n.")][:-1]

    return run


def words(given):
    return " ".join(f"{name}={value}" for name, value in given.items())


def start(sizes=SIZES, addresses=ADDRESSES, device=0, stream=STREAM, kernel=KERNEL):
    """An order to select, pack and start."""
    return "\t".join(["start", kernel, str(device), hex(stream), words(sizes), words(addresses)])


def encoded(m):
    """A tensor map as the stand-in encodes it."""
    codes = (m.rank, m.element, m.interleave, m.swizzle, m.promotion, m.fill)
    dims, strides = ([*values, 0, 0, 0, 0, 0] for values in (m.dims, m.strides_bytes))
    box = sum(side << 12 * place for place, side in enumerate(m.box))
    steps = sum(step << 8 * place for place, step in enumerate(m.element_strides))
    head = m.address, sum(code << 8 * place for place, code in enumerate(codes))
    return struct.pack("<16Q", *head, *dims[:5], *strides[:4], box, steps, 0, 0, 0)


def packed(argument):
    match argument:
        case Pointer(address=address):
            return struct.pack("<Q", address)
        case Scalar(raw=raw):
            return raw
    return encoded(argument)


def fits(multiprocessors, cta, ctas):
    """A CTA takes a multiprocessor, and all of a device are one GPC."""
    return multiprocessors // ctas if ctas <= 16 else 0


def launched(variant, sizes, addresses, device=0, stream=STREAM):
    """What the stand-in must be asked for one launch."""
    sm_count = DEVICES[device][1]
    plan = resolve(variant, {**sizes, "sm_count": sm_count}, addresses, partial(fits, sm_count))
    sides = map(numbers, (plan.grid, plan.block, plan.cluster))
    rest = str(plan.shared_bytes), str(int(plan.programmatic))
    bytes_of = [packed(argument).hex() for argument in plan.arguments]
    head = "launch", variant.entry, str(device), str(stream)
    return " ".join([*head, *sides, *rest, *bytes_of])


def test_a_launch(told):
    """Loaded, allowed its shared memory, started with the plan's numbers and parameters."""
    (asked,) = told(start())
    load = f"load {sizes_of(VARIANT).decode()}"
    allowed, fitting = "attribute 8 100000 on 0", "clusters of 2: 128 threads, 100000 on 0"
    assert [load, allowed, fitting, launched(VARIANT, SIZES, ADDRESSES)] == asked


def test_numbers(launch, libcuda, tmp_path):
    """A number reaches the kernel as Python packs it, and may be changed in a packed launch."""
    made = variant(numbers=NUMBERS)
    path = written(tmp_path / "x.kpk", [made])
    orders = [f"{start()}\teps=0.3", "set\talpha\t-inf", "set\teps\t65520", "again\t16"]
    text = "\n".join(ask(launch, libcuda, path, lines=[*orders, "set\tbeta\t1"]))
    first, changed, refused, again, unknown = [
        part.strip().split("\n")[-1] for part in f"\n{text}".split("\n.")
    ][:-1]
    minus = {"eps": 0.3, "alpha": -inf}
    assert launched(made, {**SIZES, "eps": 0.3}, ADDRESSES) == first
    assert launched(made, {**SIZES, **minus}, ADDRESSES, stream=0) == changed
    assert refused == "error parameter `eps_fp16`: 65520 does not fit in fp16"
    assert launched(made, {**SIZES, **minus}, ADDRESSES) == again
    assert unknown == ("error lora_shrink_qkv: no number `beta`\\nhint: numbers: eps, alpha")


NO_ROOM = (
    f"error {VARIANT.id}: no cluster of 2 CTAs, of 128 threads and 100000 bytes of shared memory "
    "each, fits on the device\\nhint: a MIG slice or a green context may have too few "
    "multiprocessors of one GPC"
)


def test_no_cluster_fits(told):
    """A cluster that no GPC has room for is refused by name, with what each CTA takes."""
    assert told("gpc\t1", start())[-1][-1] == NO_ROOM


def test_clusters_are_asked_about_once(told):
    """For one kernel, device and size of a cluster the driver is asked once."""
    *_, again, other = told(start(), "gpc\t1", start(), start({**SIZES, "out_dtype": 10}))
    assert [launched(VARIANT, SIZES, ADDRESSES)] == again
    assert [line.startswith("error ") for line in other][-1]


@pytest.mark.parametrize(
    ("gpc", "grid", "cluster"),
    [(148, "8,18,1", "8,1,1"), (20, "6,21,1", "6,1,1"), (18, "6,24,1", "6,1,1"), (1, "1,36,1", "")],
)
def test_clusters_that_fit(launch, libcuda, bundles, gpc, grid, cluster):
    """18 tiles are all under way at once: in fewer slices of K where not so many clusters are."""
    sizes = {**SIZES, "m": 18 * 8, "n": 16, "k": 7168, "n_active": 18, "choose_for": 0}
    lines = [f"gpc\t{gpc}", start(sizes, ADDRESSES, device=1, stream=OF_ANOTHER_DEVICE)]
    asked = ask(launch, libcuda, *bundles, lines=lines)
    (started,) = [line.split() for line in asked if line.startswith("launch")]
    assert (grid, cluster or "1,1,1") == (started[4], started[6])


def test_a_second_launch_loads_nothing(told):
    """What was used before is only started."""
    _, asked = told(start(), start({**SIZES, "m": 7}))
    assert [launched(VARIANT, {**SIZES, "m": 7}, ADDRESSES)] == asked


def test_the_default_stream_is_the_devices(told):
    """A default stream means the current context: the device's is made current."""
    _, asked = told(start(), "again\t0")
    assert [launched(VARIANT, SIZES, ADDRESSES, stream=0)] == asked


def test_rebind(told):
    """A moved argument moves in its pointer and its map, and in nothing else."""
    _, moved, other = told(start(), "rebind\ta\t0x70000", "rebind\tc\t0x30")
    addresses = {**ADDRESSES, "a": 0x70000}
    assert [launched(VARIANT, SIZES, addresses, stream=0)] == moved
    assert [launched(VARIANT, SIZES, {**addresses, "c": 0x30}, stream=0)] == other


def test_preload(told):
    """Every kernel for a device is loaded, and loaded once."""
    first, again = told(f"preload\t0\t{KERNEL}", f"preload\t0\t{KERNEL}")
    assert (first[0], sum(line.startswith("load") for line in first)) == ("2 kernels", 2)
    assert again == ["2 kernels"]


def test_unload(told):
    """What was loaded is taken out of the driver; nothing is loaded after it."""
    _, unloaded, after = told(start(), "unload", start())
    assert unloaded == ["unload"]
    assert [line.rpartition(": ")[2] for line in after] == ["the library is closed"]


@pytest.mark.parametrize(
    ("orders", "words"),
    [
        ([start(), f"again\t{OF_ANOTHER_DEVICE}"], "`stream`: belongs to device 1, but the arg"),
        ([start(stream=CAPTURED)], "on device 0 (NVIDIA H100, compute capability 9.0) while the"),
        (["preload\t1\tlora_shrink_qkv"], "holds no kernel `lora_shrink_qkv` for this device"),
        (["preload\t1\tother"], "for this device\\nhint: it is built for: sm_90a"),
        ([start(device=2)], "cuDeviceGetName: CUDA_ERROR (101): text of the error"),
        ([start(kernel="other")], "the bundle holds no kernel `other`\\nhint: it holds: lora_sh"),
        ([start(device=1)], "on device 1 (NVIDIA B200, compute capability 10.0), driver of CUDA"),
        ([start(), "rebind\tx\t0"], "no argument `x`\\nhint: arguments: c, a, b, a_offsets, exp"),
        ([start(), "rebind\ta\t0x8"], "`a`: must be aligned to 16 bytes, not 0x8"),
        (["answer\tcuLibraryLoadData\t200", start()], "cuLibraryLoadData: CUDA_ERROR (200): text"),
        (["answer\tcuLibraryLoadData\t900", start()], "(900): text of the error\\nhint: call `li"),
        (["answer\tcuLibraryLoadData\t999", start()], "CUDA_ERROR (999): unknown error"),
        (["answer\tcuLibraryGetKernel\t500", start()], "finds no kernel `lora_shrink_qkv_bf16_b"),
        (["answer\tcuLibraryGetKernel\t500", start()], "chosen, and refused by the driver\\n  lo"),
        (["answer\tcuLaunchKernelEx\t719", start()], "cuLaunchKernelEx: CUDA_ERROR (719): text"),
        (["close", start()], "the library is closed"),
    ],
)
def test_refusals(told, orders, words):
    """Errors come where Python's do, in Python's words."""
    *_, said = told(*orders)[-1]
    assert said.startswith("error ")
    assert words in said


def calls_of(told, *orders):
    """The driver calls that orders make, in order."""
    states = told(
        *(line for i in range(MOST_CALLS) for line in (f"fail\t{i}\t2", *orders, "state"))
    )
    names = [
        state[0].split()[1].rstrip(",") for state in states[len(orders) + 1 :: len(orders) + 2]
    ]
    return names[: names.index("")]


def test_every_call_fails_in_turn(told):
    """The error names the call, no context is left behind, and the same order then works."""
    use = "reload", start(), "rebind\ta\t0x70000", f"preload\t0\t{KERNEL}", "unload"
    calls = calls_of(told, *use)
    assert {"cuDevicePrimaryCtxRetain", "cuLibraryLoadData", "cuLaunchKernelEx"} < set(calls)
    assert calls[-2:] == ["cuLibraryUnload"] * 2
    turns = list(product(enumerate(calls), CODES))
    asked = (line for (i, _), code in turns for line in (f"fail\t{i}\t{code}", *use, "state", *use))
    answers = iter(told(*asked))
    left = 0
    for (_, name), code in turns:
        _, *used, state, _, again, _, _, ended = islice(answers, 2 * len(use) + 2)
        error, *others = (line for order in used for line in order if line.startswith("error "))
        assert all("the library is closed" in other for other in others)
        words = ANSWERS.get((name, code), f"{name}: CUDA_ERROR ({code})")
        assert words in error or (code == 201 and "CUDA_ERROR_INVALID_CONTEXT" in error)
        left += name == "cuCtxPopCurrent"  # nobody can pop where a pop fails
        assert state == [f"failed {name}, {left} contexts"]
        assert again[-1].startswith("launch ")
        assert ended == ["unload", "unload"]


def test_a_driver_that_is_too_old(launch, libcuda, tmp_path):
    """The toolchain's CUDA major must be the driver's."""
    path = written(tmp_path / "new.kpk", [VARIANT], release="14.1")
    (said,) = ask(launch, libcuda, path)
    assert f"{path}: built with CUDA 14.1, which needs a driver of CUDA 14.0 or newer; fo" in said


@pytest.mark.parametrize("release", ["abc", "-13.0", ""])
def test_a_release_that_is_none(launch, libcuda, tmp_path, release):
    """A bundle that states no CUDA release is refused in Python's words."""
    path = written(tmp_path / "odd.kpk", [VARIANT], release=release)
    with pytest.raises(BundleError) as caught:
        floor(release, str(path))
    assert ask(launch, libcuda, path) == [said(caught.value)]


def test_no_driver(launch, bundle):
    """A library that cannot be opened is named, once, with what to install."""
    (said,) = ask(launch, "libnothing.so", bundle)
    assert said.startswith("error dlopen: libnothing.so: cannot open")
    assert said.endswith("\\nhint: install an NVIDIA driver")


def python(variants, sizes, addresses, device):
    """The launch that Python would make, or nothing where it refuses."""
    capability, sm_count = DEVICES[device]
    try:
        chosen = select(variants, {**sizes, "sm_count": sm_count}, capability)
        return launched(chosen, sizes, addresses, device, STREAM + 0x100 * device)
    except KernelpackError:
        return None


@pytest.mark.parametrize("kernel", STEMS)
def test_thousands_of_launches(launch, libcuda, bundles, kernel):
    """Over every manifest, every parameter's bytes are those of Python's plan."""
    variants = Joined([open_bundle(path) for path in bundles]).variants(kernel)
    chance, orders, expected = Random(11), [], []
    for number in range(LAUNCHES):
        sizes, _, addresses = case(chance, variants[0])
        sizes.pop("sm_count", None)
        device = number % 2
        orders.append(start(sizes, addresses, device, STREAM + 0x100 * device, kernel))
        expected.append(python(variants, sizes, addresses, device))
    answers = ask(launch, libcuda, *bundles, lines=orders)
    told = [line for line in answers if line.startswith("launch")]
    assert [line for line in expected if line] == told
    assert len(told) > LAUNCHES / 10
