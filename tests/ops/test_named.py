"""Any kernel by the names of its manifest, on a GPU that is pretended and on the emulator."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from kernelpack.errors import ProblemError, SelectionError
from kernelpack.formats.dtype import DType
from kernelpack.ops import EmulatedLibrary
from kernelpack.ops import lora_shrink_qkv as op
from kernelpack.ops.checks import require
from kernelpack.ops.named import Named
from kernelpack.ops.op import op as make_op
from kernelpack.ops.operation import Request
from kernelpack.ops.output import Output
from kernelpack.spec.expr import parse
from kernelpack.spec.params import Access, Argument, PointerParam
from tests.fakes.variants import NUMBERS, variant
from tests.kernels import values
from tests.ops.bench import Bench, G, K, M, N

KERNEL = "lora_shrink_qkv"
X = np.arange(60, dtype=np.float32).reshape(3, 20)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A kernel that writes its numbers, and multiplies rows, on the emulator."""
    return EmulatedLibrary(values.bundle(tmp_path_factory.mktemp("values"), "sm_100a"))


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def given(bench, **changes):
    """The arrays of a call, and the one size that nothing says."""
    named = dict(zip(("a", "b", "a_offsets", "expert_ids"), bench.inputs, strict=True))
    return named | {"m": M, "out_dtype": "bf16"} | changes


def test_outputs_are_made(library):
    """Outputs come in the manifest's order, of the types and shapes that it says."""
    y, taken = library.call("values", x=X, eps=1)
    np.testing.assert_array_equal(2 * X, y)
    np.testing.assert_array_equal(np.ones(4), taken)
    assert (y.dtype, taken.dtype) == (np.float32, np.float64)


def test_outputs_that_are_given(library):
    """An output that is given is written and returned; None is not given."""
    y = np.zeros_like(X)
    found, _ = library.call("values", x=X, eps=1, y=y, taken=None)
    assert found is y
    np.testing.assert_array_equal(2 * X, y)


def test_a_type_from_the_arrays(library):
    """Which type the kernel is for follows from the arrays, or is given by any framework's word."""
    y, _ = library.call("values", x=X.astype(ml_dtypes.bfloat16), eps=1)
    assert y.dtype == ml_dtypes.bfloat16
    for word in ("fp32", "float32", "torch.float32", np.float32, DType.FP32, int(DType.FP32)):
        y, _ = library.call("values", x=X, eps=1, dtype=word)
        assert y.dtype == np.float32


def test_fewer_rows_than_the_array_has(library):
    """A size that is given may be less than an array's first side."""
    y, _ = library.call("values", x=X, eps=1, m=2)
    np.testing.assert_array_equal(2 * X[:2], y)


def test_prepared_on_the_emulator(library):
    """What is prepared computes each time, with what the arrays hold then."""
    x = X.copy()
    prepared = library.prepare("values", x=x, eps=1)
    np.testing.assert_array_equal(2 * X, prepared()[0])
    x += 1
    np.testing.assert_array_equal(2 * x, prepared()[0])


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"eps": None}, "`eps` is not given: what is written in four types"),
        ({"eps": "1"}, "`eps`: must be a number, not '1' of type str"),
        ({"eps": 1e9}, "parameter `in_half`: 1e+09 does not fit in fp16"),
        ({"esp": 1}, "values: takes no `esp`\nhint: did you mean `eps`?"),
        ({"z": 1}, "hint: it takes x, y, taken, m, k, dtype, eps, alpha"),
        ({"x": None}, "`x` must be given: [m, k] of bf16 or fp32"),
        ({"x": None, "m": 3}, "`x` must be given: [m, k] of bf16 or fp32"),
        ({"x": None, "m": 3, "k": 20}, "`dtype` must be given, as bf16 or fp32: their type"),
        ({"x": None, "m": 3, "k": 20, "dtype": "fp32"}, "`x` must be given: [m, k] of fp32"),
        ({"x": X.astype(np.float64)}, "`x` must be bf16 or fp32, not fp64"),
        ({"x": X[0]}, "`x` must have the shape [m, k], not [20]"),
        ({"x": X.T}, "`x` must be row-major without gaps"),
        ({"x": [[1.0]]}, "`x` is a list among numpy arrays"),
        ({"m": 2.7}, "`m` must be an integer, not 2.7"),
        ({"m": 4}, "`x` must have at least m, 4, along side 0, not 3"),
        ({"k": 19}, "`x` must have k, 19, along side 1, not 20"),
        ({"m": X}, "`m` must be an integer, not a ndarray"),
        ({"m": True}, "`m` must be an integer, not True of type bool"),
        ({"m": np.True_}, "of type bool"),
        ({"m": "2"}, "`m` must be an integer, not '2' of type str"),
        ({"m": "fp32"}, "`m` must be an integer, not 'fp32' of type str"),
        ({"m": np.float32}, "`m` must be an integer, not <class 'numpy.float32'> of type type"),
        ({"dtype": X}, "`dtype` must be an integer or a type, not a ndarray"),
        ({"dtype": "float23"}, "`dtype` must be bf16 or fp32, not float23"),
        ({"dtype": "pf32"}, "not pf32\nhint: did you mean `fp32`?"),
        ({"dtype": "float64"}, "`dtype` must be bf16 or fp32, not fp64"),
        ({"dtype": "bf16"}, "`x` must be bf16 as `dtype` says, not fp32"),
        ({"y": np.zeros((3, 20), np.float64)}, "`y` must be fp32 beside `x`, not fp64"),
        ({"y": np.zeros((3, 20), ml_dtypes.bfloat16)}, "`y` must be fp32 beside `x`, not bf16"),
        ({"y": np.zeros((3, 19), np.float32)}, "`y` must have x's k, 20, along side 1, not 19"),
        ({"y": X}, "`y` overlaps `x`"),
        ({"x": np.ones(61, np.float32)[1:].reshape(3, 20)}, "`x` must be aligned to 16 bytes"),
        ({"taken": np.zeros(3)}, "`taken` must have 4 along side 0, not 3"),
        ({"stream": 1}, "`stream`: the emulator has none"),
    ],
)
def test_refused(library, given, what):
    """Every slip is named, with what would be right."""
    with pytest.raises(ProblemError) as error:
        library.call("values", **{"x": X, "eps": 1, **given})
    assert what in str(error.value)


def finite(_problem, read):
    """A rule that no manifest says."""
    require(bool(np.isfinite(read("x")).all()), "`x` must be finite", "values")


@make_op(Named(kernel="values", outputs={"y": "doubled"}, check_values=finite))
def doubled(x, *, eps, doubled=None, stream=None, library=None, debug=False):
    """An op of one's own."""
    return Request(
        inputs={"x": x},
        outputs={"y": doubled, "taken": None},
        problem=lambda _views, _outs: {"eps": eps},
        stream=stream,
        library=library,
        debug=debug,
    )


def test_an_op_of_ones_own(library):
    """It says its kernel's name, its words and its rules; the manifest says the rest."""
    y, taken = doubled(X, eps=1, library=library)
    np.testing.assert_array_equal(2 * X, y)
    np.testing.assert_array_equal(np.ones(4), taken)
    with pytest.raises(ProblemError, match="`x` must be finite"):
        doubled(X + np.inf, eps=1, library=library)
    with pytest.raises(ProblemError, match="`doubled` must have x's k, 20, along side 1, not 19"):
        doubled(X, eps=1, doubled=np.zeros((3, 19), np.float32), library=library)


def test_an_unknown_kernel(library, bench):
    """A kernel that the bundle does not hold is refused, with what it holds."""
    with pytest.raises(SelectionError, match="did you mean `values`"):
        library.call("valuse", x=X)
    with pytest.raises(SelectionError, match="it holds: lora_shrink_qkv"):
        bench.library.call("lora", a=bench.a)


@pytest.mark.parametrize("kernel", [None, 3, b"values", ["values"]])
def test_no_name(library, bench, kernel):
    """What is not a name asks for no kernel, not for any that there is."""
    for each in (library, bench.library):
        with pytest.raises(ProblemError, match="a kernel is asked for by its name, not by a"):
            each.call(kernel, x=X)
    with pytest.raises(ProblemError, match="by its name"):
        bench.library.select(kernel, {}, 0)
    with pytest.raises(ProblemError, match="by its name"):
        library.run(kernel, {}, {}, range(1, 2))
    assert bench.cuda.launches == []


def test_same_as_the_op(bench):
    """By its names a kernel is launched as its own op launches it."""
    op(*bench.inputs, m=M, out=bench.c, library=bench.library)
    found = bench.library.call(KERNEL, **given(bench, c=bench.c))
    assert found is bench.c
    assert bench.cuda.launches[0] == bench.cuda.launches[1]


def test_a_new_output(bench):
    """Without one, an output is made in device memory, of the type that a size says."""
    found = bench.library.call(KERNEL, **given(bench, out_dtype="fp32"))
    assert isinstance(found, Output)
    assert (found.shape, found.dtype, found.device) == ((3, M, N), DType.FP32, 0)


def test_one_output_is_out(bench):
    """The output of a kernel that has one may be called so; its type says the size's."""
    inputs = given(bench, out_dtype=None)
    assert bench.library.call(KERNEL, **inputs, out=bench.c) is bench.c


def test_prepared(tmp_path):
    """A prepared launch takes other arrays and other numbers."""
    bench = Bench(tmp_path, variant(numbers=NUMBERS))
    prepared = bench.library.prepare(KERNEL, **given(bench, eps=1))
    other = bench.array((G, 3 * N, K), DType.BF16)
    prepared.rebind(b=other, eps=-2, alpha=0.5)
    prepared()
    launch = bench.cuda.launches[-1]
    assert launch.number(2) == other.pointer
    assert [launch.number(7 + place) for place in range(3)] == [0xC000, 0xC000, 0xC0000000]
    assert launch.number(13) == 0x3F000000  # alpha in fp32


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"eps": float("nan")}, "`eps`: must be a number, not NaN"),
        ({"eps": 1e6}, "parameter `eps_fp16`: 1e+06 does not fit in fp16"),
        ({"esp": 1}, "no argument `esp`"),
    ],
)
def test_rebound_to_no_number(tmp_path, changed, what):
    """What cannot be put is refused, and nothing is changed."""
    bench = Bench(tmp_path, variant(numbers=NUMBERS))
    prepared = bench.library.prepare(KERNEL, **given(bench, eps=1))
    prepared()
    with pytest.raises(ProblemError) as error:
        prepared.rebind(alpha=3, **changed)
    assert what in str(error.value)
    prepared()
    assert bench.cuda.launches[0] == bench.cuda.launches[1]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"out_dtype": None}, "`out_dtype` must be given, as bf16 or fp32: out_dtype"),
        ({"b": (DType.FP16, (G, 3 * N, K))}, "`b` must be bf16, not fp16"),
        ({"b": (DType.BF16, (G, 3 * N, K + 8))}, f"`b` must have a's k, {K}, along side 2, not 80"),
        ({"b": (DType.BF16, (G, 3 * N + 1, K))}, "`b` must have 3 * n along side 1, not 49"),
        (
            {"expert_ids": (DType.I32, (2,))},
            "`a_offsets` must have expert_ids's n_active + 1, 3, along side 0, not 4",
        ),
        ({"expert_ids": (DType.U32, (3,))}, "`expert_ids` must be i32, not u32"),
        ({"a": np.ones((M, K), ml_dtypes.bfloat16)}, "among numpy arrays"),
        ({"a_offset": 1}, "takes no `a_offset`\nhint: did you mean `a_offsets`?"),
    ],
)
def test_refused_on_a_gpu(bench, changes, what):
    """Arrays on a GPU are checked against the manifest likewise."""
    made = {
        name: bench.array(value[1], value[0]) if isinstance(value, tuple) else value
        for name, value in changes.items()
    }
    with pytest.raises(ProblemError) as error:
        bench.library.call(KERNEL, **given(bench, **made))
    assert what in str(error.value)
    assert bench.cuda.launches == []


def test_integers_of_a_size_are_alike(bench):
    """Frameworks without u32 have i32 in its place."""
    offsets = bench.values([0, 4, 4, M], DType.I32)
    bench.library.call(KERNEL, **given(bench, a_offsets=offsets))
    assert bench.parameter("a_offsets") == offsets.pointer


def test_another_device(bench):
    """Arrays of two devices are refused by both names."""
    there = bench.array((G, 3 * N, K), DType.BF16, device=1)
    with pytest.raises(ProblemError, match="`b` is on device 1, `a` on device 0"):
        bench.library.call(KERNEL, **given(bench, b=there))


def with_argument(name, access, *sides):
    """A variant with one more array, the last of its parameters."""
    known = variant()
    shape = tuple(map(parse, sides))
    more = Argument(name=name, dtype=DType.FP32, shape=shape, access=access)
    params = (*known.params, PointerParam(name=name, argument=name))
    return replace(known, arguments=(*known.arguments, more), params=params)


def test_a_workspace(tmp_path):
    """Scratch memory is made and not returned; of each launch it is its own."""
    bench = Bench(tmp_path, with_argument("workspace", Access.WRITE, "m", "n"))
    found = [bench.library.call(KERNEL, **given(bench)) for _ in range(2)]
    assert [each.shape for each in found] == [(3, M, N)] * 2
    places = [launch.number(7) for launch in bench.cuda.launches]
    assert 0 not in places
    mine = bench.array((M, N), DType.FP32)
    bench.library.call(KERNEL, **given(bench, workspace=mine))
    assert bench.cuda.launches[-1].number(7) == mine.pointer


def test_an_array_that_is_read_and_written(tmp_path):
    """What a kernel reads before it writes it must be given, and is not returned."""
    bench = Bench(tmp_path, with_argument("state", Access.READ_WRITE, "m"))
    with pytest.raises(ProblemError, match=r"`state` must be given: \[m\] of fp32"):
        bench.library.call(KERNEL, **given(bench))
    state = bench.array((M,), DType.FP32)
    assert bench.library.call(KERNEL, **given(bench, state=state)).shape == (3, M, N)


def test_an_array_that_is_absent(tmp_path):
    """An array of no elements may be left out, or is refused where there is to be none."""
    bench = Bench(tmp_path, with_argument("bias", Access.READ, "n if g > 4 else 0"))
    bench.library.call(KERNEL, **given(bench))
    assert bench.cuda.launches[-1].number(7) == 0
    with pytest.raises(ProblemError, match=r"`bias` must have n if g > 4 else 0, 0, along side 0"):
        bench.library.call(KERNEL, **given(bench, bias=bench.array((N,), DType.FP32)))


def test_a_size_that_counts_no_rows(tmp_path):
    """An array may be longer beside a number of rows that was given, not beside a truth."""
    bench = Bench(tmp_path, with_argument("bias", Access.READ, "g if out_dtype else 0"))
    bench.library.call(KERNEL, **given(bench, bias=bench.array((G,), DType.FP32)))
    with pytest.raises(ProblemError, match="`bias` must have g if out_dtype else 0, 4, along"):
        bench.library.call(KERNEL, **given(bench, bias=bench.array((G + 1,), DType.FP32)))


def test_types_that_no_guard_tells_apart(tmp_path):
    """Where sizes alone would choose another type's variant, the manifest is at fault."""
    made = [replace(variant(out=out), guards=variant().guards[:2]) for out in ("bf16", "fp32")]
    bench = Bench(tmp_path, *made)
    c = bench.array((3, M, N), DType.FP32)
    with pytest.raises(ProblemError, match="which does not take these arrays") as error:
        bench.library.call(KERNEL, **given(bench, out_dtype=0, c=c))
    assert "must compare a size with their types" in error.value.hint


def test_nothing_to_compute(bench):
    """Where no output has elements nothing is launched."""
    none = bench.array((0, K), DType.BF16)
    found = bench.library.call(KERNEL, **given(bench, a=none, m=0))
    assert (found.shape, bench.cuda.launches) == ((3, 0, N), [])
