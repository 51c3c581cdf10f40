"""Records there and back: any expression and any variant comes back equal."""

import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelpack.bundle.reader import open_bundle
from kernelpack.formats.dtype import DType
from kernelpack.spec.expr import ARITY, ZERO, Expr, Op, constant, evaluate, parse
from kernelpack.spec.params import Access, Argument, MapParam, ScalarParam
from kernelpack.spec.tensormap import Element, Fill, Interleave, Promotion, Swizzle, TensorMapSpec
from kernelpack.spec.variant import Budget, LaunchSpec, Number, Size
from tests.fakes.bundles import write_bundle
from tests.fakes.variants import NUMBERS, SIZES, variant

INT64 = st.integers(-(2**63), 2**63 - 1)
LEAVES = st.tuples(st.just(Op.CONST), INT64 | st.integers(-9, 9)) | st.tuples(
    st.just(Op.NAME), st.sampled_from([*SIZES, "sm_count"])
)
OPERATORS = [op for op in Op if ARITY[op]]
CODE = st.recursive(
    LEAVES.map(lambda leaf: (leaf,)),
    lambda code: st.sampled_from(OPERATORS).flatmap(
        lambda op: st.tuples(*[code] * ARITY[op]).map(lambda parts: (*sum(parts, ()), (op, 0)))
    ),
    max_leaves=20,
)
EXPRS = st.builds(Expr, st.text(), CODE)


def round_trip(folder, made):
    return open_bundle(write_bundle(folder / "x.kpk", [made])).variant(made.id)


FEW = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@FEW
@given(cost=EXPRS, workspace=EXPRS, sides=st.tuples(EXPRS, EXPRS, EXPRS))
def test_any_expression(tmp_path, cost, workspace, sides):
    """An expression comes back with its text and its code."""
    launch = replace(variant().launch, grid=sides, cluster=sides[::-1])
    made = replace(variant(), cost=cost, workspace_bytes=workspace, launch=launch)
    assert made == round_trip(tmp_path, made)


@FEW
@given(
    constants=st.lists(st.tuples(st.text(), INT64 | st.text()), max_size=9),
    template=st.text(),
    docs=st.lists(st.text(), min_size=len(SIZES), max_size=len(SIZES)),
)
def test_any_words(tmp_path, constants, template, docs):
    """Words of any alphabet and integers of 64 bits come back."""
    sizes = tuple(Size(name=n, doc=d) for n, d in zip(SIZES, docs, strict=True))
    made = replace(variant(), constants=tuple(constants), template=template, sizes=sizes)
    assert made == round_trip(tmp_path, made)


def of_map(**changes):
    spec = TensorMapSpec(
        name="other",
        argument="b",
        element=Element.BF16,
        dims=(parse("k"), parse("3 * n"), parse("g")),
        strides_bytes=(parse("2 * k"), parse("6 * n * k")),
        box=(constant(64), constant(8), constant(1)),
    )
    params = (MapParam(name="map", map=replace(spec, **changes)),)
    return replace(variant(), params=params)


@pytest.mark.parametrize(
    "made",
    [
        *(of_map(element=element) for element in Element),
        *(of_map(swizzle=swizzle) for swizzle in Swizzle),
        *(of_map(interleave=interleave) for interleave in Interleave),
        *(of_map(fill=fill) for fill in Fill),
        *(of_map(promotion=promotion) for promotion in Promotion),
        of_map(element_strides=(constant(1), constant(2), constant(1))),
        of_map(offset_bytes=parse("2 * m")),
        of_map(gather4=True),
        of_map(dims=(), strides_bytes=(), box=()),
    ],
)
def test_tensor_maps(tmp_path, made):
    """Every field of a tensor map comes back."""
    assert made == round_trip(tmp_path, made)


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype.is_integer])
def test_scalars(tmp_path, dtype):
    """A scalar of every integer type comes back."""
    made = replace(variant(), params=(ScalarParam(name="s", dtype=dtype, value=parse("m")),))
    assert made == round_trip(tmp_path, made)


@pytest.mark.parametrize("default", [None, 0.0, 1e-6, -math.inf, 5e-324])
def test_numbers(tmp_path, default):
    """A number comes back with its default, and every parameter that takes it."""
    made = variant(numbers=(Number(name="eps", doc="what is added", default=default),))
    assert made == round_trip(tmp_path, made)


def test_kernels_of_other_numbers(tmp_path):
    """Variants of one stem may differ in numbers; each has its own."""
    made = [variant(tile=16), variant(numbers=NUMBERS), variant(tile=32, numbers=NUMBERS[:1])]
    read = open_bundle(write_bundle(tmp_path / "x.kpk", made))
    assert [NUMBERS[:n] for n in (0, 2, 1)] == [read.variant(each.id).numbers for each in made]


@pytest.mark.parametrize("dtype", DType)
@pytest.mark.parametrize("access", Access)
def test_arguments(tmp_path, dtype, access):
    """An argument of every type and access comes back."""
    argument = Argument(name="x", dtype=dtype, shape=(), access=access, align_bytes=128)
    made = replace(variant(), arguments=(argument,), params=())
    assert made == round_trip(tmp_path, made)


def test_a_bare_variant(tmp_path):
    """A variant of no arguments, guards, sizes or parameters comes back."""
    one = (constant(1),) * 3
    made = replace(
        variant(),
        axes=(),
        constants=(),
        sizes=(),
        arguments=(),
        params=(),
        guards=(),
        launch=LaunchSpec(grid=one, block=one),
        cost=ZERO,
        budget=Budget(registers=-1, shared_bytes=2**40, tensor_memory_columns=512),
    )
    assert made == round_trip(tmp_path, made)


def test_code_runs_alike(tmp_path):
    """What comes back evaluates to the same number."""
    made = replace(variant(), cost=parse("align_up(m, 64) * 5_000_000_000 // max(n, 1)"))
    sizes = {"m": 65, "n": 7}
    assert evaluate(made.cost, sizes) == evaluate(round_trip(tmp_path, made).cost, sizes)
