"""The C++ loader chooses Python's variant and makes Python's plan, or refuses in Python's words."""

from dataclasses import replace
from functools import partial
from math import inf, nan
from random import Random

import pytest

from kernelpack.bundle.joined import Joined
from kernelpack.bundle.reader import open_bundle
from kernelpack.errors import KernelpackError
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.spec.expr import constant, parse
from kernelpack.spec.launch import Pointer, Scalar, resolve
from kernelpack.spec.params import layout
from kernelpack.spec.select import select
from kernelpack.spec.tensormap import PADDED, Element, Fill, Interleave, Swizzle
from tests.cpp.cases import STEMS, case
from tests.cpp.compiler import ask, said, written
from tests.fakes.variants import NUMBERS, variant
from tests.machine_code.build import ROOT
from tests.refusals import ADDRESSES, SIZES

CALL = SIZES | {"sm_count": 132}
CASES = 1500  # of each kernel
MAPS = 400


def line(kernel, sizes, capability, addresses):
    """A case as `inspect plans` reads it."""
    integers = {name: value for name, value in sizes.items() if not isinstance(value, float)}
    reals = {name: value.hex() for name, value in sizes.items() if isinstance(value, float)}
    given = (integers, addresses, *([reals] if reals else []))
    words = [" ".join(f"{k}={v}" for k, v in each.items()) for each in given]
    return "\t".join([kernel, "{}.{}".format(*capability), *words])


def numbers(values):
    return ",".join(str(int(value)) for value in values)


def shown(argument):
    """An argument of a plan as `inspect plans` prints it."""
    match argument:
        case Pointer(address=address):
            return f"pointer:{address}"
        case Scalar(dtype=dtype, value=value) if dtype.is_integer:
            return f"scalar:{int(dtype)}:{value}"
        case Scalar(dtype=dtype, raw=raw):
            bits = int.from_bytes(raw.ljust(8, bytes(1)), "little", signed=True)
            return f"scalar:{int(dtype)}:{bits}"
    m = argument
    lists = map(numbers, (m.dims, m.strides_bytes, m.box, m.element_strides))
    encoding = (m.element, m.swizzle, m.interleave, m.fill, m.promotion, m.gather4)
    return ":".join(["map", str(m.address), *lists, numbers(encoding)])


def fits(sizes, cta, ctas):
    """A multiprocessor holds two CTAs of little shared memory, and is a GPC's only limit."""
    return sizes.get("sm_count", 0) * (1 if cta.shared_bytes > 116_000 else 2) // ctas


def planned(variants, sizes, capability, addresses):
    """What Python makes of a case, as `inspect plans` prints it."""
    try:
        integers = {name: value for name, value in sizes.items() if not isinstance(value, float)}
        variant = select(variants, integers, capability)
        plan = resolve(variant, sizes, addresses, partial(fits, sizes))
    except KernelpackError as error:
        return said(error)
    sides = map(numbers, (plan.grid, plan.block, plan.cluster))
    slots = numbers(slot.offset for slot in layout(variant.params))
    rest = [str(plan.shared_bytes), str(int(plan.programmatic)), slots]
    return " ".join([variant.id, variant.entry, *sides, *rest, *map(shown, plan.arguments)])


@pytest.fixture(scope="module")
def answers(inspect, bundles):
    """Python's and the loader's answers to the same cases, by kernel."""
    return {kernel: both(inspect, bundles, kernel) for kernel in STEMS}


def both(inspect, bundles, kernel):
    chance = Random(7)
    variants = Joined([open_bundle(path) for path in bundles]).variants(kernel)
    cases = [case(chance, variants[0]) for _ in range(CASES)]
    lines = [line(kernel, *given) for given in cases]
    expected = [planned(variants, *given) for given in cases]
    return expected, ask(inspect, "plans", *bundles, lines=lines)


def test_a_b300_takes_its_own_code(inspect, tmp_path):
    """Of a bundle for both, both languages take sm_103a's variants on a device of 10.3."""
    path = written(tmp_path / "x.kpk", expand(load(ROOT / "manifests" / "nvfp4_quantize.yaml")))
    variants = open_bundle(path).variants()
    chance = Random(5)
    cases = [
        (sizes, (10, 3), there)
        for sizes, _, there in (case(chance, variants[0]) for _ in range(99))
    ]
    expected = [planned(variants, *given) for given in cases]
    assert expected == ask(
        inspect, "plans", path, lines=[line("nvfp4_quantize", *c) for c in cases]
    )
    taken = {
        answer.split("[")[1].split(",")[0] for answer in expected if answer.startswith("nvfp4_")
    }
    assert taken == {"arch=sm_103a"}


@pytest.mark.parametrize("kernel", STEMS)
def test_plans_are_pythons(answers, kernel):
    """Variant, grid, block, cluster, shared memory, parameters and maps: all equal."""
    expected, told = answers[kernel]
    assert expected == told


@pytest.mark.parametrize(
    "words",
    [
        *(f"{kernel}[arch=" for kernel in STEMS),
        "lora_shrink_qkv[arch=sm_90a",
        "lora_shrink_qkv[arch=sm_100a",
        "nvfp4_grouped_gemm[arch=sm_100a",
        "serves",
        "needs `",
        "no address for",
        "must be aligned",
        "a dimension must be",
        "does not fit in u32",
        "fits on the device",
        "does not fit in 64 bits",
    ],
)
def test_cases_are_of_every_kind(answers, words):
    """The cases above reach every kernel, both targets and each way to be refused."""
    assert any(words in answer for expected, _ in answers.values() for answer in expected)


def gathering(path):
    """A bundle of one variant, whose first map is for gather4: `n` rows high, over `m` rows."""
    made = variant()
    first, *rest = made.params
    spec = replace(first.map, gather4=True, box=(constant(64), parse("n")))
    made = replace(made, params=(replace(first, map=spec), *rest))
    return made, written(path, [made])


@pytest.mark.parametrize(
    ("n", "m", "words"),
    [(1, 2**31, "map:"), (4, 9, "must be of one row, not 4"), (1, 2**31 + 1, "not 2147483649")],
)
def test_maps_for_gather4(inspect, tmp_path, n, m, words):
    """Boxes of one row over rows that int32 numbers name; others are refused in Python's words."""
    made, path = gathering(tmp_path / "gather.kpk")
    sizes = {"n": n, "m": m, "k": 64, "g": 1, "n_active": 1, "a_dtype": 9, "out_dtype": 9}
    sizes["sm_count"] = 132
    given = sizes, (9, 0), {argument.name: 4096 for argument in made.arguments}
    expected = planned([made], *given)
    assert words in expected
    assert [expected] == ask(inspect, "plans", path, lines=[line(made.kernel, *given)])


def encoded(chance, number):
    """A kernel of its own, whose first map is of any encoding and of a rank from 1 to 5."""
    made = variant()
    first, *rest = made.params
    rank = chance.randint(1, 5)
    inner = chance.choice((16, 32, 64, 128, 128))
    spec = replace(
        first.map,
        element=chance.choice([*Element, *list(PADDED) * 8]),
        swizzle=chance.choice(list(Swizzle)),
        interleave=chance.choice([Interleave.NONE, *Interleave]),
        fill=chance.choice([Fill.ZERO, *Fill]),
        dims=tuple(map(constant, (chance.choice((256, 255)), *(8,) * (rank - 1)))),
        strides_bytes=(constant(1024),) * (rank - 1),
        box=tuple(map(constant, (inner, *(1,) * (rank - 1)))),
    )
    return replace(made, kernel=f"k{number}", params=(replace(first, map=spec), *rest))


def test_maps_of_any_encoding(inspect, tmp_path):
    """Of each encoding both languages say the same: a map, or the rule that it breaks."""
    chance = Random(11)
    made = [encoded(chance, number) for number in range(MAPS)]
    path = written(tmp_path / "maps.kpk", made)
    sizes = {"n": 16, "m": 128, "k": 64, "g": 1, "n_active": 1, "a_dtype": 9, "out_dtype": 9}
    given = sizes | {"sm_count": 132}, (9, 0), {a.name: 4096 for a in made[0].arguments}
    expected = [planned([v], *given) for v in made]
    assert expected == ask(inspect, "plans", path, lines=[line(v.kernel, *given) for v in made])
    for words in (
        "map:",
        "a padded type must not",
        "an interleaved map",
        "swizzle of U4",
        "B32 must",
    ):
        assert any(words in answer for answer in expected), words


def test_an_unknown_kernel(inspect, bundles):
    """A kernel that is not held has no candidates."""
    given = {"m": 1}, (9, 0), {"a": 1}
    asked = line("other", *given)
    assert [planned((), *given)] == ask(inspect, "plans", *bundles, lines=[asked])


def reals(chance):
    """Numbers of every magnitude; ties between two of fp16, bf16 and fp32; what is none."""
    for digits in (8, 9, 11, 12, 24, 25):
        for rest in (0, 2.0**-40, -(2.0**-40)):
            yield 1 + 2.0**-digits + rest
            yield 1 + 3 * 2.0**-digits + rest
            yield 2.0**-14 * (2.0**-10 + 2.0**-digits) + rest * 2.0**-20
    yield from (0.0, -0.0, 5e-324, 65519.99, 65520.0, 3.4e38, 1e39, inf, -inf, nan)
    yield from (chance.gauss(0, 1) * 2.0 ** chance.randint(-160, 140) for _ in range(800))


def test_numbers_are_rounded_as_pythons(inspect, tmp_path):
    """A number has the same bits in every type, or is refused in the same words."""
    made = variant(numbers=NUMBERS)
    path = written(tmp_path / "x.kpk", [made])
    given = [{"eps": eps} for eps in reals(Random(4))]
    given += [{"eps": 1.0, "alpha": alpha} for alpha in (0.5, 1e99)]
    cases = [({**CALL, **each}, (9, 0), ADDRESSES) for each in given]
    expected = [planned([made], *each) for each in cases]
    lines = [line("lora_shrink_qkv", *each) for each in cases]
    assert expected == ask(inspect, "plans", path, lines=lines)
    assert 300 < sum(not answer.startswith("error") for answer in expected) < len(cases) - 9


def test_a_number_that_is_missing(inspect, tmp_path):
    """A number without a default must be given."""
    made = variant(numbers=NUMBERS)
    path = written(tmp_path / "x.kpk", [made])
    given = (CALL, (9, 0), ADDRESSES)
    expected = planned([made], *given)
    assert expected == "error lora_shrink_qkv: `eps` is not given: what is added"
    assert [expected] == ask(inspect, "plans", path, lines=[line("lora_shrink_qkv", *given)])
