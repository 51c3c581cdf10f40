"""Atomics for many lanes at once give what lanes one after the other give."""

import numpy as np
import pytest

from kernelpack.emulator.semantics.rounding import bf16_to_f32, f32_to_bf16
from kernelpack.emulator.semantics.updates import update
from tests.emulator.kernel import launch

INTEGERS = ("u32", "s32", "u64", "s64")
FLOATS = ("f16", "bf16", "f32", "f64")
CASES = [
    *((operation, kind) for operation in ("add", "min", "max") for kind in (*INTEGERS, *FLOATS)),
    *((operation, kind) for operation in ("and", "or", "xor", "exch") for kind in ("b32", "b64")),
    *(("cas", kind) for kind in ("b16", "b32", "b64")),
    *(("inc", "u32"), ("dec", "u32")),
]
PLACES = {
    "one": [5] * 32,
    "each its own": list(range(3, 35)),
    "backwards": list(range(34, 2, -1)),
    "in pairs": [3 + i // 2 for i in range(32)],
    "mixed": [7, 3, 7, 7, 9, 3, 0, 7] * 4,
    "of one lane": [4],
    "of none": [],
}


def one_after_the_other(operation, kind, words, places, operands):
    """Scalar by scalar, in the type of the element."""
    old = []
    for lane, place in enumerate(places):
        before = words[place]
        old.append(before)
        words[place] = scalar(operation, kind, before, [each[lane] for each in operands])
    return old


def scalar(operation, kind, old, x):
    """What one lane makes of one word, both as bits."""
    if operation in ("inc", "dec"):
        old, x = int(old), int(x[0])
        if operation == "inc":
            return 0 if old >= x else old + 1
        return x if old == 0 or old > x else old - 1
    if operation in ("exch", "cas"):
        return x[-1] if operation == "exch" or old == x[0] else old
    if kind == "bf16":
        wide = [bf16_to_f32(np.array([v])) for v in (old, x[0])]
        return f32_to_bf16(plain(operation, kind)(*wide))[0]
    bits = old.itemsize
    element = np.dtype(f"{ {'f': 'f', 's': 'i'}.get(kind[0], 'u') }{bits}")
    values = [np.array([v]).view(element) for v in (old, x[0])]
    return np.asarray(plain(operation, kind)(*values)).view(f"u{bits}")[0]


def plain(operation, kind):
    """The function of numbers; of zeros the negative one is less (PTX ISA 9.7.3.11)."""
    if kind in FLOATS and operation in ("min", "max"):
        pick = min if operation == "min" else max
        return lambda a, b: pick(a, b, key=lambda v: (v[0], not np.signbit(v[0])))
    return {
        "add": np.add, "min": np.minimum, "max": np.maximum,
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    }[operation]  # fmt: skip


def numbers(kind, count, seed):
    """Bits of a type; of floats some infinities, zeros of both signs and no NaN."""
    rng = np.random.default_rng(seed)
    bits = int(kind[-2:])
    if kind in FLOATS:
        values = rng.choice([0.0, -0.0, 1.5, -3.0, 1e-3, 7.7, 60000.0, np.inf], count)
        if kind == "bf16":
            return f32_to_bf16(values.astype(np.float32))
        return values.astype(f"f{bits // 8}").view(f"u{bits // 8}")
    few = rng.integers(0, 4, count, np.uint64)
    large = rng.integers(0, 2**63, count, np.uint64) * np.uint64(2) + few
    return np.where(rng.random(count) < 0.7, few, large).astype(f"u{bits // 8}")


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize(("operation", "kind"), CASES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_as_one_after_the_other(operation, kind, places):
    """The words, what each lane found, and whether anything changed."""
    words = numbers(kind, 40, 1)
    operands = [numbers(kind, len(places), 2 + k) for k in range(1 + (operation == "cas"))]
    expected = words.copy()
    old = one_after_the_other(operation, kind, expected, places, operands)
    begun = words.copy()
    how = update(operation, kind, 8 * words.itemsize)
    found, changed = how(words, np.array(places, np.intp), operands)
    assert words.tolist() == expected.tolist()
    assert found.tolist() == [int(v) for v in old]
    if begun.tolist() != expected.tolist():
        assert changed


def test_a_change_that_is_taken_back_is_one():
    """Others may see it in between; where nothing is written there is none."""
    words, places = np.array([1], np.uint32), np.zeros(2, np.intp)
    exchange = update("exch", "b32", 32)
    assert exchange(words, places, [np.array([2, 1], np.uint32)])[1]
    assert not exchange(words, places, [np.array([1, 1], np.uint32)])[1]


def test_pairs_of_halves():
    """Both elements of a word are updated, each for itself."""
    words = np.array([0x3C003C00], np.uint32)
    old, _ = update("add", "f16", 16)(
        words, np.zeros(2, np.intp), [np.array([0x3C000000] * 2, np.uint32)]
    )
    assert [hex(v) for v in (*old, *words)] == ["0x3c003c00", "0x40003c00", "0x42003c00"]


def test_a_hint_for_the_cache_is_no_operand():
    """It follows the value."""
    policy = "createpolicy.fractional.L2::evict_last.b64 %rd1, 1.0;"
    add = "atom.global.add.L2::cache_hint.u32 %r1, [%out+4096], 2, %rd1;"
    result, out = launch(f"{policy} {add} st.global.b32 [%mine], %r1;")
    assert (result.error, out[:32].tolist()) == (None, list(range(0, 64, 2)))
