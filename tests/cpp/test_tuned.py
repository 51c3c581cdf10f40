"""The C++ loader takes files of times as Python does: same choices, same refusals, same words."""

import json
from dataclasses import replace
from random import Random

import pytest

from kernelpack.bundle.joined import Joined
from kernelpack.bundle.reader import open_bundle
from kernelpack.errors import KernelpackError
from kernelpack.load.overlay import image_of, overlay_of, overlay_text
from kernelpack.spec.select import judge, select
from kernelpack.spec.tuned import Measured, Overlay, TunedDevice, TunedKernel
from tests.cpp.cases import case
from tests.cpp.compiler import HERE, SANITIZE, ask, compile_program, said
from tests.cpp.compiler import written as written_for_the_stand_in
from tests.cpp.test_launch import start
from tests.fakes.variants import variant
from tests.load.test_overlay import BROKEN
from tests.refusals import SIZES

STEMS = ("lora_shrink_qkv", "nvfp4_w4a16_grouped_gemm")
H200 = TunedDevice(name="NVIDIA H200", capability=(9, 0), sm_count=132)
PROBLEMS, CASES = 40, 900
MOST = 2**63 - 1


@pytest.fixture(scope="module")
def held(bundles):
    return Joined([open_bundle(path) for path in bundles])


def able(held, stem):
    return [v for v in held.variants(stem) if v.arch.runs_on(H200.capability)]


def sizes_of(chance, held, stem):
    """The sizes of a problem that some variant serves on the device, half as large again too."""
    names = {size.name for size in held.variants(stem)[0].sizes}
    while True:
        sizes, _, _ = case(chance, held.variants(stem)[0])
        if names <= set(sizes) and any(size > 8 for size in sizes.values()):
            tried = [scaled(sizes, factor) for factor in (1, 1.25, 1.5)]
            if not any(chosen(held, stem, each, ()).startswith("error") for each in tried):
                return tried[0]


def near(chance, measured):
    """Sizes of about those of a measured problem, as a server meets them."""
    name = first_large(measured)
    factor = chance.choice((0.7, 0.71, 0.8, 0.95, 1, 1, 1.05, 1.1, 1.15, 1.2, 1.3, 1.41, 1.42))
    return {**measured, name: min(MOST, int(measured[name] * factor)), "sm_count": H200.sm_count}


def first_large(sizes):
    """The size that grows from problem to problem: the first that is more than a few."""
    return next(name for name in sizes if sizes[name] > 8)


def timed(chance, variants, sizes):
    """A problem and times of those that serve; few times, so that some are equal."""
    serving = [v for v in variants if judge(v, sizes, H200.capability).cost is not None]
    known = {v.id: chance.choice((31, 32, 33, 9, 9, 9)) for v in serving if chance.random() < 0.9}
    plain = {name: size for name, size in sizes.items() if name != "sm_count"}
    return Measured(sizes=plain, nanoseconds=known)


def scaled(sizes, factor):
    """The same problem, `factor` times as large in one size."""
    name = first_large(sizes)
    return {**sizes, name: min(MOST, int(sizes[name] * factor)), "sm_count": H200.sm_count}


def tuned_kernel(chance, held, stem):
    variants = able(held, stem)
    problems = [timed(chance, variants, sizes_of(chance, held, stem)) for _ in range(PROBLEMS)]
    again = [
        timed(chance, variants, scaled(p.sizes, f)) for p in problems for f in (1, 1.25, 1.25, 1.5)
    ]
    images = {v.id: image_of(v, held) for v in variants}
    return TunedKernel(kernel=stem, images=images, problems=(*problems, *again))


@pytest.fixture(scope="module")
def overlay(held):
    chance = Random(3)
    kernels = tuple(tuned_kernel(chance, held, stem) for stem in STEMS)
    return Overlay(device=H200, driver="some", kernels=kernels)


@pytest.fixture(scope="module")
def written(overlay, tmp_path_factory):
    path = tmp_path_factory.mktemp("tuned") / "tuned.json"
    path.write_text(overlay_text(overlay), encoding="utf-8")
    return path


def chosen(held, stem, sizes, measured):
    try:
        return select(held.variants(stem), sizes, H200.capability, measured).id
    except KernelpackError as error:
        return said(error)


def line(stem, sizes):
    return "\t".join([stem, "9.0", " ".join(f"{k}={v}" for k, v in sizes.items())])


@pytest.fixture(scope="module", params=STEMS)
def answers(request, held, overlay, inspect, bundles, written):
    """Choices by times, by costs, and the loader's: of problems near and far."""
    chance, stem = Random(5), request.param
    measured = overlay.problems(stem)
    problems = [near(chance, chance.choice(measured).sizes) for _ in range(CASES)]
    problems += [sizes_of(chance, held, stem) for _ in range(CASES // 3)]
    by_times = [chosen(held, stem, sizes, measured) for sizes in problems]
    by_costs = [chosen(held, stem, sizes, ()) for sizes in problems]
    lines = [line(stem, sizes) for sizes in problems]
    return by_times, by_costs, ask(inspect, "tuned", written, *bundles, lines=lines)


def test_choices_are_pythons(answers):
    """Near, far, of equal times, of none, and refused: all alike."""
    by_times, _, told = answers
    assert by_times == told


def test_choices_are_of_every_kind(answers):
    """Times change many of these choices, and leave many as costs have them."""
    by_times, by_costs, _ = answers
    changed = sum(a != b for a, b in zip(by_times, by_costs, strict=True))
    assert CASES // 10 < changed < CASES


def told(held, path):
    """What Python says of a file of times, as `inspect overlays` prints it."""
    try:
        found = overlay_of(held, path)
    except KernelpackError as error:
        return said(error)
    kernels = " ".join(f"{kernel.kernel}:{len(kernel.problems)}" for kernel in found.kernels)
    return f"{found.device} {kernels}"


def of_first(overlay, **changes):
    first, *rest = overlay.kernels
    return replace(overlay, kernels=(replace(first, **changes), *rest))


def stale(overlay):
    """Files of times that are of something else."""
    first = overlay.kernels[0]
    one, *others = first.images
    yield of_first(overlay, images={**first.images, one: "00"})
    yield of_first(overlay, images={"gone[arch=sm_90a]": "00", **first.images})
    fewer = {other: first.images[other] for other in others}
    yield of_first(overlay, images=fewer, problems=())
    yield of_first(overlay, kernel="thrice")
    yield of_first(overlay, problems=(Measured(sizes={"m": 1}, nanoseconds={}),))
    yield replace(overlay, device=replace(H200, capability=(8, 0)))
    yield replace(overlay, kernels=())
    yield overlay


def texts(overlay):
    """Files of times in every form that Python's tests know, and some of JSON's corners."""
    whole = overlay_text(of_first(overlay, problems=overlay.kernels[0].problems[:1]))
    yield from (overlay_text(made) for made in stale(overlay))
    yield from (change(whole) for change in BROKEN.values())
    yield json.dumps(json.loads(whole), ensure_ascii=True, separators=(",", ":"))
    yield whole + " x"
    yield whole.replace('"some"', '"s\\u00f6me \\"\\\\\\/\\b\\f\\n\\r\\t \\u0041\\u20ac"')
    yield whole.replace('"NVIDIA H200"', '"\\ud83d\\uDE00 \U0001f600"')
    yield whole.replace('"NVIDIA H200"', '"\\ud83d"')
    yield whole.replace('"NVIDIA H200"', '"\\ude00\\ud83d"')
    yield whole.replace('"NVIDIA H200"', '"\\ud83d\\u0041"')
    yield whole.replace('"NVIDIA H200"', '"\\u00e"')
    yield whole.replace('"some"', '"\n"')
    yield whole.replace('"some"', '"\\x"')
    yield whole.replace("[9,", "[09,").replace("   9,", "   09,")
    yield whole.replace('"format": 1', '"format": 1, "more": [true, false, null, -1.5e3, {}, []]')
    yield whole.replace('"format": 1', '"format": 2, "format": 1')
    yield whole.replace('"format": 1', '"format": 9223372036854775808')
    yield whole.replace('"format": 1', '"format": 1' + "0" * 30)
    yield whole.replace("{", "[", 1)
    yield whole[: len(whole) // 2]
    yield "\ufeff" + whole


def test_refusals_are_pythons(held, overlay, inspect, bundles, tmp_path):
    """Each file is taken or refused alike, in the same words."""
    paths = []
    for number, text in enumerate(texts(overlay)):
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(text, encoding="utf-8")
    (tmp_path / "bytes.json").write_bytes(b'{"format": 1, "\xff": 1}')
    paths += [tmp_path / "bytes.json", tmp_path / "none.json", tmp_path]
    expected = [told(held, path) for path in paths]
    assert expected == ask(inspect, "overlays", *bundles, lines=map(str, paths))
    for words in ("is stale", "no file of measured", "cannot be read", "NVIDIA H200 (comp"):
        assert any(words in one for one in expected), words


H100 = TunedDevice(name="NVIDIA H100", capability=(9, 0), sm_count=132)
"""The stand-in's first device; its second is another one."""
TILES = [variant(tile=tile) for tile in (32, 64)]


@pytest.fixture
def launched(programs, libcuda, tmp_path):
    """Launch a problem with a file of times of a device, and without; the messages of each."""
    program = compile_program(HERE / "launch.cpp", programs / "launch", *SANITIZE)
    bundle = written_for_the_stand_in(tmp_path / "x.kpk", TILES)
    held = open_bundle(bundle)

    def launch(device):
        images = {v.id: image_of(v, held) for v in TILES}
        known = Measured(sizes=SIZES, nanoseconds={TILES[0].id: 9, TILES[1].id: 7})
        kernel = TunedKernel(kernel="lora_shrink_qkv", images=images, problems=(known,))
        path = tmp_path / "tuned.json"
        path.write_text(overlay_text(Overlay(device=device, driver="", kernels=(kernel,))))
        text = "\n".join(ask(program, libcuda, bundle, lines=[start(), f"tuned\t{path}", start()]))
        return text.split("\n.")[:3]

    return launch


def test_a_library_chooses_by_times(launched):
    """By costs the first by id; by times the faster one, in the same process."""
    by_costs, taken, by_times = launched(H100)
    assert f"launch {TILES[0].entry} " in by_costs
    assert "error" not in taken
    assert f"launch {TILES[1].entry} " in by_times


def test_a_library_refuses_times_of_no_device_here(launched):
    """A device that the process does not see: in Python's words."""
    _, refused, _ = launched(replace(H100, name="NVIDIA H200"))
    assert "was measured on NVIDIA H200 (compute capability 9.0, 132 multiprocessors); " in refused
    assert "here is device 0 (NVIDIA H100, compute capability 9.0), device 1 (NVIDIA B2" in refused
