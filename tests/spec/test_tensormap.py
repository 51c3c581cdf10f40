"""The rules of the TMA unit, one by one: a map that keeps it, and a near twin that breaks it."""

from dataclasses import replace

import pytest

from kernelpack.errors import TensorMapError
from kernelpack.spec.expr import parse
from kernelpack.spec.tensormap import (
    BITS,
    Element,
    Fill,
    Interleave,
    Promotion,
    Swizzle,
    TensorMap,
    TensorMapSpec,
    check,
    resolve,
)

GOOD = TensorMap(
    name="a_map",
    element=Element.BF16,
    address=0x1000,
    dims=(4096, 128),
    strides_bytes=(8192,),
    box=(64, 16),
    element_strides=(1, 1),
    swizzle=Swizzle.B128,
)
GATHER = replace(GOOD, box=(64, 1), gather4=True)
NIBBLES = replace(
    GOOD, element=Element.U4_ALIGN16, dims=(4096, 128), box=(128, 16), strides_bytes=(2048,)
)
SIXES = replace(NIBBLES, element=Element.U6_ALIGN16)
LAYERS = replace(
    GOOD,
    dims=(64, 8, 4),
    strides_bytes=(128, 1024),
    box=(16, 8, 4),
    element_strides=(1, 1, 1),
    swizzle=Swizzle.B32,
    interleave=Interleave.B32,
)
PACKED = replace(NIBBLES, element=Element.U4_ALIGN8, swizzle=Swizzle.B64)


@pytest.mark.parametrize(
    "good",
    [
        GOOD,
        NIBBLES,
        PACKED,
        replace(GOOD, dims=(2**32, 1)),
        replace(GOOD, strides_bytes=(2**40 - 16,)),
        replace(GOOD, strides_bytes=(0,)),
        replace(GOOD, element_strides=(1, 8)),
        replace(GOOD, box=(64, 256)),
        replace(GOOD, box=(8, 1)),
        replace(GOOD, box=(256, 1), swizzle=Swizzle.NONE),
        replace(GOOD, box=(32, 1), swizzle=Swizzle.B64),
        replace(GOOD, box=(16, 1), swizzle=Swizzle.B32),
        replace(GOOD, fill=Fill.NAN),
        replace(GOOD, dims=(64,), strides_bytes=(), box=(64,), element_strides=(1,)),
        replace(
            GOOD,
            dims=(64, 2, 2, 2, 2),
            strides_bytes=(128, 256, 512, 1024),
            box=(64, 1, 1, 1, 1),
            element_strides=(1,) * 5,
        ),
        LAYERS,
        replace(LAYERS, address=0x20, strides_bytes=(64, 64)),
        replace(LAYERS, interleave=Interleave.B16, swizzle=Swizzle.B128),
        replace(NIBBLES, swizzle=Swizzle.NONE),
        replace(NIBBLES, swizzle=Swizzle.B128_ATOM32),
        replace(SIXES, swizzle=Swizzle.B128_ATOM64),
        GATHER,
        replace(GATHER, dims=(64, 2**31)),
    ],
)
def test_a_map_that_keeps_every_rule(good):
    """A map at the edge of a rule, on its right side, is accepted."""
    assert check(good) is None


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        (
            replace(
                GOOD,
                dims=(64,) * 6,
                strides_bytes=(128,) * 5,
                box=(8,) * 6,
                element_strides=(1,) * 6,
            ),
            "rank must be 1 to 5, not 6",
        ),
        (replace(GOOD, dims=()), "rank must be 1 to 5, not 0"),
        (replace(GOOD, strides_bytes=()), "strides: one fewer than dims"),
        (replace(GOOD, box=(64,)), "the box must have the rank of dims"),
        (replace(GOOD, element_strides=(1,)), "element strides: one a dim"),
        (replace(GOOD, dims=(0, 128)), r"a dimension must be 1 to 2\^32 elements, not 0"),
        (replace(GOOD, dims=(2**32 + 1, 1)), r"a dimension must be 1 to 2\^32"),
        (replace(GOOD, element_strides=(1, 0)), "element stride must be 1 to 8, not 0"),
        (replace(GOOD, element_strides=(1, 9)), "element stride must be 1 to 8, not 9"),
        (replace(GOOD, address=-16), "the address must fit in 64 bits, not -0x10"),
        (replace(GOOD, address=2**64), "the address must fit in 64 bits"),
        (replace(GOOD, address=0x1008), "address must be a multiple of 16 bytes, not 0x1008"),
        (replace(NIBBLES, address=0x1010), "address must be a multiple of 32 bytes, not 0x1010"),
        (
            replace(LAYERS, address=0x1010),
            "address must be a multiple of 32 bytes",
        ),
        (replace(LAYERS, strides_bytes=(128, 1040)), "stride must be a multiple of 32 bytes"),
        (replace(GOOD, interleave=Interleave.B16), "of an interleaved map must be 3 to 5, not 2"),
        (replace(LAYERS, swizzle=Swizzle.B64), "swizzle of interleave B32 must be B32, not B64"),
        (replace(LAYERS, swizzle=Swizzle.NONE), "swizzle of interleave B32 must be B32, not NONE"),
        (
            replace(
                NIBBLES,
                dims=(4096, 8, 4),
                strides_bytes=(2048, 16384),
                box=(128, 8, 4),
                element_strides=(1, 1, 1),
                interleave=Interleave.B16,
            ),
            "a padded type must not be interleaved, not B16",
        ),
        (
            replace(NIBBLES, swizzle=Swizzle.B128_ATOM64),
            "swizzle of U4_ALIGN16 must be one of NONE, B128, B128_ATOM32, not B128_ATOM64",
        ),
        (
            replace(SIXES, swizzle=Swizzle.B128_ATOM32_FLIP8),
            "must be one of NONE, B128, B128_ATOM32, B128_ATOM64, not B128_ATOM32_FLIP8",
        ),
        (replace(GOOD, strides_bytes=(8200,)), "stride must be a multiple of 16 bytes, not 8200"),
        (replace(NIBBLES, strides_bytes=(2064,)), "stride must be a multiple of 32 bytes"),
        (replace(GOOD, strides_bytes=(2**40,)), r"stride must be below 2\^40 bytes"),
        (replace(GOOD, strides_bytes=(-16,)), r"stride must be below 2\^40 bytes, not -16"),
        (replace(GOOD, box=(64, 257)), "box side must be 1 to 256 elements, not 257"),
        (replace(GOOD, box=(64, 0)), "box side must be 1 to 256 elements, not 0"),
        (replace(GOOD, box=(12, 1)), "inner box must be a multiple of 16 bytes, not 24"),
        (replace(PACKED, box=(8, 1)), "inner box must be a multiple of 16 bytes, not 4"),
        (replace(GOOD, box=(72, 1)), "fit the B128 swizzle's 128 bytes, not 144"),
        (replace(GOOD, box=(40, 1), swizzle=Swizzle.B64), "fit the B64 swizzle's 64 bytes, not 80"),
        (replace(GOOD, box=(24, 1), swizzle=Swizzle.B32), "fit the B32 swizzle's 32 bytes, not 48"),
        (replace(NIBBLES, box=(96, 16)), "inner box of a padded type must be 128, not 96"),
        (replace(NIBBLES, dims=(4160, 1)), "dim 0 of a padded type: multiple of 128, not 4160"),
        (replace(NIBBLES, swizzle=Swizzle.B64), "fit the B64 swizzle's 64 bytes, not 128"),
        (replace(PACKED, dims=(4095, 1)), "dimension 0 of packed nibbles must be even, not 4095"),
        (replace(GOOD, element=Element.U16, fill=Fill.NAN), "NaN fill needs a float element"),
        (replace(GATHER, box=(64, 4)), "a box of a map for gather4 must be of one row, not 4"),
        (replace(GATHER, dims=(64, 2**31 + 1)), r"must be numbers below 2\^31, not 2147483649"),
        (replace(GATHER, interleave=Interleave.B16), "an interleaved map must be 3 to 5, not 2"),
        (
            replace(
                GATHER,
                dims=(64, 8, 1),
                strides_bytes=(128, 128),
                box=(64, 1, 1),
                element_strides=(1, 1, 1),
            ),
            "rank of a map for gather4 must be 2, not 3",
        ),
    ],
)
def test_a_map_that_breaks_one_rule(bad, rule):
    """A map on the wrong side of a rule is refused by that rule, with the value, by its name."""
    with pytest.raises(TensorMapError, match=rule) as error:
        check(bad)
    assert error.value.where == "tensor map `a_map`"


@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        (Swizzle, range(7)),
        (Fill, range(2)),
        (Interleave, range(3)),
        (Promotion, range(4)),
        (Element, range(16)),
    ],
)
def test_codes_are_the_drivers(kind, codes):
    """The numbers are those of the driver's enums, without a gap."""
    assert list(codes) == [int(value) for value in kind]


def test_every_element_has_a_width():
    """No element is without its bits."""
    assert set(Element) == set(BITS)


def spec(**changes: object) -> TensorMapSpec:
    given = {
        "name": "b_map",
        "argument": "b",
        "element": Element.BF16,
        "dims": (parse("k"), parse("3 * n")),
        "strides_bytes": (parse("2 * k"),),
        "box": (parse(64), parse("min(n, 48)")),
        "swizzle": Swizzle.B128,
        "promotion": Promotion.L2_256B,
    }
    return TensorMapSpec(**(given | changes))  # type: ignore[arg-type]


def test_resolve():
    """A description with its sizes and an address is a map with every number known."""
    expected = TensorMap(
        name="b_map",
        element=Element.BF16,
        address=0x2000,
        dims=(4096, 48),
        strides_bytes=(8192,),
        box=(64, 16),
        element_strides=(1, 1),
        swizzle=Swizzle.B128,
        promotion=Promotion.L2_256B,
    )
    assert expected == resolve(spec(), {"k": 4096, "n": 16}, 0x2000)


def test_resolve_adds_the_offset():
    """The map begins `offset_bytes` after the argument."""
    moved = spec(offset_bytes=parse("32 * n"))
    assert resolve(moved, {"k": 4096, "n": 16}, 0x2000).address == 0x2200


def test_resolve_checks():
    """A rule that this problem breaks is an error before any driver is asked."""
    with pytest.raises(TensorMapError, match="multiple of 16 bytes, not 40"):
        resolve(spec(), {"k": 20, "n": 16}, 0x2000)


def test_equal_maps_are_one_key():
    """A map is its own key: equal numbers, equal hash."""
    twin = replace(GOOD)
    assert {GOOD: 1}[twin] == 1


def test_inner_bytes():
    """The innermost box of 128 nibbles is 64 bytes of memory."""
    assert (GOOD.inner_bytes, NIBBLES.inner_bytes, GOOD.rank) == (128, 64, 2)
