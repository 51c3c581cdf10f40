"""The C++ loader chooses Python's variant and makes Python's plan, or refuses in Python's words."""

from random import Random

import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.errors import KernelpackError
from kernelpack.formats.dtype import DType
from kernelpack.spec.launch import Pointer, Scalar, resolve
from kernelpack.spec.params import layout
from kernelpack.spec.select import select
from tests.cpp.compiler import ask, said

KERNEL = "lora_shrink_qkv"
DEVICES = ((9, 0), (9, 0), (10, 0), (10, 0), (8, 0))
CASES = 2500


def case(chance):
    """A problem, a device and addresses, most of them as a server would have them."""
    sizes = {
        "m": chance.choice([1, 8, 100, 4096, chance.randint(0, 100_000), 2**32, 2**62]),
        "n": chance.choice([8, 16, 64, 128, 1000, 8 * chance.randint(1, 720)]),
        "k": chance.choice([8, 64, 4096, 7168, 64 * chance.randint(1, 200), 100]),
        "g": chance.choice([1, 4, 32, 2**33]),
        "n_active": chance.randint(0, 64),
        "a_dtype": int(chance.choice([DType.BF16, DType.BF16, DType.FP16, DType.FP32])),
        "out_dtype": int(chance.choice([DType.BF16, DType.FP16, DType.FP32])),
        "sm_count": chance.choice([1, 108, 132, 148]),
    }
    if chance.random() < 0.02:
        del sizes[chance.choice(list(sizes))]
    unit = chance.choice([256, 256, 256, 16, 8])
    names = ("c", "a", "b", "a_offsets", "expert_ids")
    addresses = {name: unit * chance.randint(1, 2**44) for name in names}
    if chance.random() < 0.02:
        del addresses[chance.choice(names)]
    return sizes, chance.choice(DEVICES), addresses


def line(sizes, capability, addresses, kernel=KERNEL):
    """A case as `inspect plans` reads it."""
    words = [" ".join(f"{k}={v}" for k, v in given.items()) for given in (sizes, addresses)]
    return "\t".join([kernel, "{}.{}".format(*capability), *words])


def numbers(values):
    return ",".join(str(int(value)) for value in values)


def shown(argument):
    """An argument of a plan as `inspect plans` prints it."""
    match argument:
        case Pointer(address=address):
            return f"pointer:{address}"
        case Scalar(dtype=dtype, value=value):
            return f"scalar:{int(dtype)}:{value}"
    m = argument
    lists = map(numbers, (m.dims, m.strides_bytes, m.box, m.element_strides))
    encoding = (m.element, m.swizzle, m.interleave, m.fill, m.promotion)
    return ":".join(["map", str(m.address), *lists, numbers(encoding)])


def planned(variants, sizes, capability, addresses):
    """What Python makes of a case, as `inspect plans` prints it."""
    try:
        variant = select(variants, sizes, capability)
        plan = resolve(variant, sizes, addresses)
    except KernelpackError as error:
        return said(error)
    sides = map(numbers, (plan.grid, plan.block, plan.cluster))
    slots = numbers(slot.offset for slot in layout(variant.params))
    rest = [str(plan.shared_bytes), str(int(plan.programmatic)), slots]
    return " ".join([variant.id, variant.entry, *sides, *rest, *map(shown, plan.arguments)])


@pytest.fixture(scope="module")
def answers(inspect, lora):
    """Python's and the loader's answers to the same cases."""
    chance = Random(7)
    cases = [case(chance) for _ in range(CASES)]
    variants = open_bundle(lora).variants(KERNEL)
    expected = [planned(variants, *given) for given in cases]
    return expected, ask(inspect, "plans", lora, lines=[line(*given) for given in cases])


def test_plans_are_pythons(answers):
    """Variant, grid, block, cluster, shared memory, parameters and maps: all equal."""
    expected, told = answers
    assert expected == told


@pytest.mark.parametrize(
    "words",
    [
        "lora_shrink_qkv[arch=sm_90a",
        "lora_shrink_qkv[arch=sm_100a",
        "serves",
        "needs `",
        "no address for",
        "must be aligned",
        "a dimension must be",
        "does not fit in u32",
        "does not fit in 64 bits",
    ],
)
def test_cases_are_of_every_kind(answers, words):
    """The cases above reach both targets and each way to be refused."""
    assert any(words in answer for answer in answers[0])


def test_an_unknown_kernel(inspect, lora):
    """A kernel that is not held has no candidates."""
    sizes, addresses = {"m": 1}, {"a": 1}
    expected = planned((), sizes, (9, 0), addresses)
    asked = line(sizes, (9, 0), addresses, kernel="other")
    assert [expected] == ask(inspect, "plans", lora, lines=[asked])
