"""From a variant and a problem to a launch with every number known, or a named refusal."""

from dataclasses import replace

import pytest

from kernelpack.errors import ExpressionError, ProblemError, TensorMapError
from kernelpack.formats.dtype import DType
from kernelpack.spec.expr import ONE, constant, parse
from kernelpack.spec.launch import Dim3, Pointer, Scalar, resolve
from kernelpack.spec.tensormap import TensorMap
from tests.fakes.variants import NUMBERS, variant

SIZES = {"m": 100, "n": 16, "k": 4096, "g": 4, "n_active": 4, "a_dtype": 9, "out_dtype": 9}
ADDRESSES = {"c": 0x1000, "a": 0x2000, "b": 0x3000, "a_offsets": 0x4004, "expert_ids": 0x5004}


def launching(**changes):
    """A variant whose launch is changed."""
    good = variant()
    return replace(good, launch=replace(good.launch, **changes))


def test_the_numbers():
    """Grid, block, cluster and shared memory are the manifest's expressions at these sizes."""
    plan = resolve(variant(), SIZES, ADDRESSES)
    assert (plan.grid, plan.block, plan.cluster, plan.shared_bytes, plan.programmatic) == (
        Dim3(12),
        Dim3(128),
        Dim3(2),
        100_000,
        True,
    )


def test_the_arguments_are_in_the_order_of_the_signature():
    """A map, pointers, scalars: each where the kernel takes it."""
    a_map, *rest = resolve(variant(), SIZES, ADDRESSES).arguments
    assert isinstance(a_map, TensorMap)
    assert rest == [
        *(Pointer(ADDRESSES[name]) for name in ("c", "b", "a_offsets", "expert_ids")),
        Scalar(DType.U32, 100),
        Scalar(DType.U32, 4096),
    ]


def test_the_entry_is_the_variants():
    """A plan says which symbol it launches."""
    assert resolve(variant(), SIZES, ADDRESSES).entry == "lora_shrink_qkv_bf16_bf16_64"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grid": (constant(0), ONE, ONE)}, "grid.x must be 1 to 2147483647, not 0"),
        ({"grid": (constant(2**31), ONE, ONE)}, "grid.x must be 1 to 2147483647"),
        ({"grid": (constant(2), constant(65_536), ONE)}, "grid.y must be 1 to 65535, not 65536"),
        ({"grid": (constant(2), ONE, constant(65_536))}, "grid.z must be 1 to 65535, not 65536"),
        ({"block": (constant(1025), ONE, ONE)}, "block.x must be 1 to 1024, not 1025"),
        ({"block": (constant(64), constant(32), ONE)}, "threads of a block must be 1 to 1024"),
        ({"block": (constant(0), ONE, ONE)}, "block.x must be 1 to 1024, not 0"),
        ({"block": (constant(-1), constant(-1), ONE)}, "block.x must be 1 to 1024, not -1"),
        ({"block": (ONE, ONE, constant(65))}, "block.z must be 1 to 64, not 65"),
        ({"cluster": (constant(17), ONE, ONE)}, "cluster.x must be 1 to 16, not 17"),
        ({"cluster": (constant(4), constant(8), ONE)}, "blocks of a cluster must be 1 to 16"),
        ({"cluster": (constant(5), ONE, ONE)}, "whole clusters"),
        ({"shared_bytes": constant(232_449)}, "at most 232448 bytes, not 232449"),
        ({"shared_bytes": constant(-1)}, "at most 232448 bytes, not -1"),
    ],
)
def test_limits(changes, message):
    """A launch beyond a limit of the target is refused, with the limit and the variant."""
    with pytest.raises(ProblemError, match=message) as error:
        resolve(launching(**changes), SIZES, ADDRESSES)
    assert error.value.where == variant().id


@pytest.mark.parametrize(
    "changes",
    [
        {"grid": (constant(2**31 - 2), constant(65_535), constant(65_535))},
        {"block": (constant(16), constant(64), ONE)},
        {"cluster": (constant(12), ONE, ONE)},
        {"shared_bytes": constant(232_448)},
        {"shared_bytes": constant(0)},
    ],
)
def test_at_the_limits(changes):
    """What is at a limit is still allowed."""
    assert resolve(launching(**changes), SIZES, ADDRESSES)


def test_the_device_is_asked():
    """A grid, a cluster and a scalar may depend on how many clusters of the launch's CTAs fit."""
    asked = []

    def fits(cta, ctas):
        asked.append((cta.threads, cta.shared_bytes))
        return 20 // ctas

    made = launching(
        grid=(parse("fitting_clusters(4) * fitting_ctas(5)"), ONE, ONE),
        cluster=(parse("fitting_ctas(5)"), ONE, ONE),
    )
    plan = resolve(made, SIZES, ADDRESSES, fits)
    assert (plan.grid, plan.cluster) == (Dim3(5 * 4), Dim3(4))
    assert set(asked) == {(128, 100_000)}


def test_no_cluster_fits():
    """A launch of which not even one cluster fits is refused by name, not left to hang."""
    message = "no cluster of 2 CTAs, of 128 threads and 100000 bytes of shared memory each, fits"
    with pytest.raises(ProblemError, match=message) as error:
        resolve(variant(), SIZES, ADDRESSES, lambda cta, ctas: 0)
    assert error.value.where == variant().id


def test_without_clusters_nobody_asks():
    """A launch of single CTAs is the driver's to refuse."""
    made = launching(cluster=(ONE, ONE, ONE))
    assert resolve(made, SIZES, ADDRESSES, lambda cta, ctas: 0).cluster == Dim3(1)


@pytest.mark.parametrize(("sm_count", "grid"), [(132, 15), (148, 17), (4, 0)])
def test_without_a_driver(sm_count, grid):
    """The GPCs of the target's GPU stand in for the device's."""
    made = launching(grid=(parse("1 + fitting_clusters(8)"), ONE, ONE), cluster=(ONE, ONE, ONE))
    whole = replace(made, launch=replace(made.launch, shared_bytes=constant(232_448)))
    assert resolve(whole, SIZES | {"sm_count": sm_count}, ADDRESSES).grid == Dim3(1 + grid)


def test_a_missing_address():
    """Every argument needs an address; the error says which one and lists them all."""
    with pytest.raises(ProblemError, match="no address for argument `b`") as error:
        resolve(variant(), SIZES, {"c": 0, "a": 0})
    assert error.value.hint == "needs: c, a, b, a_offsets, expert_ids"


@pytest.mark.parametrize("given", [{}, {"b": 0}])
def test_an_absent_argument(given):
    """An argument of no elements may be left out; the kernel sees a null pointer."""
    plan = resolve(
        variant(), SIZES | {"g": 0}, {n: a for n, a in ADDRESSES.items() if n != "b"} | given
    )
    assert plan.arguments[2] == Pointer(0)


def test_an_argument_whose_shape_has_no_value():
    """A side that cannot be computed is no reason to leave the argument out."""
    sizes = {name: size for name, size in SIZES.items() if name != "g"}
    with pytest.raises(ProblemError, match="no address for argument `b`"):
        resolve(variant(), sizes, {n: a for n, a in ADDRESSES.items() if n != "b"})


def test_a_misaligned_address():
    """An address must keep the argument's alignment."""
    with pytest.raises(ProblemError, match="must be aligned to 16 bytes, not 0x1008"):
        resolve(variant(), SIZES, ADDRESSES | {"c": 0x1008})


def test_a_rule_of_the_tensor_map():
    """A tensor map that this problem breaks is an error of the plan."""
    with pytest.raises(TensorMapError, match="multiple of 16 bytes, not 8200"):
        resolve(variant(), SIZES | {"k": 4100}, ADDRESSES)


def test_a_missing_size():
    """A size that an expression names must be given."""
    with pytest.raises(ExpressionError, match="needs `n_active`"):
        resolve(variant(), {"m": 1, "k": 64}, ADDRESSES)


def with_scalar(value):
    """A variant whose scalar `m`, a u32, has another value."""
    good = variant()
    given = [replace(p, value=parse(value)) if p.name == "m" else p for p in good.params]
    return replace(good, params=tuple(given))


@pytest.mark.parametrize("value", ["0", "m", "4294967295"])
def test_a_scalar_that_fits(value):
    """A scalar within its type's range is passed on."""
    assert resolve(with_scalar(value), SIZES, ADDRESSES)


@pytest.mark.parametrize("value", ["-1", "4294967296"])
def test_a_scalar_that_does_not_fit(value):
    """A scalar outside its type's range is refused by the parameter's name."""
    with pytest.raises(ProblemError, match=f"{value} does not fit in u32") as error:
        resolve(with_scalar(value), SIZES, ADDRESSES)
    assert error.value.where == "parameter `m`"


NARROW = {
    DType.FP16: 0.0999755859375,
    DType.BF16: 0.10009765625,
    DType.FP32: 0.10000000149011612,
    DType.FP64: 0.1,
}


def test_numbers_of_the_call():
    """A number reaches each parameter rounded to its type; one left out is its default."""
    plan = resolve(variant(numbers=NUMBERS), {**SIZES, "eps": -2}, ADDRESSES)
    assert plan.arguments[-8:] == (
        *(Scalar(dtype, -2.0) for dtype in NARROW),
        *(Scalar(dtype, value) for dtype, value in NARROW.items()),
    )


def test_none_for_a_number():
    """A number that is None is left out."""
    plans = [
        resolve(variant(numbers=NUMBERS), {**SIZES, "eps": 1, **given}, ADDRESSES)
        for given in ({}, {"alpha": None})
    ]
    assert plans[0] == plans[1]


def test_the_bytes_of_a_scalar():
    """Integers and numbers are little-endian, of the size of their type."""
    assert Scalar(DType.I16, -2).raw == b"\xfe\xff"
    assert Scalar(DType.FP32, 0.1).raw == b"\xcd\xcc\xcc\x3d"
    assert Scalar(DType.BF16, -2.0).raw == b"\x00\xc0"


@pytest.mark.parametrize(
    ("given", "where", "what"),
    [
        ({}, "lora_shrink_qkv", "`eps` is not given: what is added"),
        ({"eps": "1"}, "`eps`", "must be a number, not '1' of type str"),
        ({"eps": float("nan")}, "`eps`", "must be a number, not NaN"),
        ({"eps": 1e6}, "parameter `eps_fp16`", "1e+06 does not fit in fp16"),
        ({"eps": 0, "alpha": 1e300}, "parameter `alpha_fp16`", "1e+300 does not fit in fp16"),
    ],
)
def test_no_number(given, where, what):
    """A number that is missing, none, or too large for a parameter is refused by name."""
    with pytest.raises(ProblemError) as error:
        resolve(variant(numbers=NUMBERS), {**SIZES, **given}, ADDRESSES)
    assert (error.value.where, error.value.what) == (where, what)


def test_a_float_is_no_size():
    """A size that is not an integer is refused, never cut."""
    with pytest.raises(ExpressionError, match="must be an integer, not 2"):
        resolve(variant(), {**SIZES, "m": 2.7}, ADDRESSES)
