"""The NVFP4 quantiser on a GPU that is pretended: what is launched, what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.nvfp4_quantize.problem import Case, inputs
from kernelpack.load.load import load as load_bundle
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.ops import nvfp4_quantize as op
from kernelpack.ops.arrays import DeviceArray
from kernelpack.runtime.driver import Driver
from tests.fakes.bundles import write_bundle
from tests.fakes.driver import FakeCuda, FakeDevice

ROOT = Path(__file__).parents[2]
T, K, GROUPS = 138, 96, 3
CASE = Case(name="t", k=K, tokens=(5, 130, 3), ids=(1, -1, 2), e=3)
DTYPES = {
    np.dtype(np.uint32): DType.U32,
    np.dtype(np.int32): DType.I32,
    np.dtype(np.float32): DType.FP32,
    np.dtype(np.uint8): DType.U8,
}
INDEX = ("row_offsets", "scale_offsets", "expert_ids")


@pytest.fixture(scope="module")
def variants():
    return [
        v for v in expand(load(ROOT / "manifests/nvfp4_quantize.yaml")) if str(v.arch) == "sm_100a"
    ]


class Bench:
    """The inputs of CASE on a pretended B200, by name, and the manifest's kernels."""

    def __init__(self, folder, variants):
        self.cuda = FakeCuda(devices=(FakeDevice(capability=(10, 0)),))
        self.cuda.signatures.update({v.entry: v.slots for v in variants})
        path = write_bundle(folder / "x.kpk", variants)
        self.library = load_bundle(path, driver=Driver(self.cuda))
        self.arrays = {name: self.upload(array) for name, array in inputs(CASE).items()}
        self.codes = self.upload(np.zeros((T, K // 2), np.uint8))
        self.scales = self.upload(np.zeros((4, 2, 32, 4, 4), np.uint8))
        self.parameters = [p.name for p in variants[0].params]

    def upload(self, data):
        """An array on the device that holds a copy."""
        address = self.cuda.new_memory(data.nbytes, 0)
        self.cuda.on_cuMemcpyHtoD(address, np.ascontiguousarray(data).ctypes.data, data.nbytes)
        dtype = DTYPES.get(data.dtype, DType.BF16)
        return DeviceArray(pointer=address, shape=data.shape, dtype=dtype)

    def parameter(self, name):
        """A parameter of the last launch as an unsigned integer."""
        return self.cuda.launches[-1].number(self.parameters.index(name))

    @property
    def plain(self):
        """The inputs of the plain form."""
        one = self.upload(np.ones(1, np.float32))
        return {"x": self.arrays["x"], "tensor_scales": one}


@pytest.fixture
def bench(tmp_path, variants):
    return Bench(tmp_path, variants)


def run(bench, **options):
    return op(**{**bench.arrays, **options}, library=bench.library)


@pytest.mark.parametrize("name", ["x", "tensor_scales", *INDEX])
def test_pointers(bench, name):
    """Each array's address goes to its parameter."""
    run(bench)
    assert bench.parameter(name) == bench.arrays[name].pointer


def test_given_outputs(bench):
    """The op returns the outputs it was given, and the kernel writes them."""
    codes, scales = run(bench, codes=bench.codes, scales=bench.scales)
    assert (codes is bench.codes, scales is bench.scales) == (True, True)
    found = (bench.parameter("codes"), bench.parameter("scales"))
    assert found == (codes.pointer, scales.pointer)


def test_new_outputs(bench):
    """New outputs are bytes; row blocks of scales are enough for any groups of t rows."""
    codes, scales = run(bench)
    assert (codes.shape, codes.dtype) == ((T, K // 2), DType.U8)
    assert (scales.shape, scales.dtype) == ((T // 128 + GROUPS, 2, 32, 4, 4), DType.U8)


def test_plain(bench):
    """Without groups the plain kernel runs; the index arrays lie nowhere."""
    _, scales = op(**bench.plain, library=bench.library)
    assert "plain" in bench.cuda.launches[0].entry
    assert scales.shape == (2, 2, 32, 4, 4)
    assert [bench.parameter(name) for name in (*INDEX, "n_active")] == [0, 0, 0, 0]


@pytest.mark.parametrize(("dtype", "entry"), [(DType.BF16, "bf16"), (DType.FP16, "fp16")])
def test_type_of_x(bench, dtype, entry):
    """The kernel is of x's type."""
    run(bench, x=replace(bench.arrays["x"], dtype=dtype))
    assert entry in bench.cuda.launches[0].entry


def test_scales_of_e4m3(bench):
    """Scales may be called the numbers they are."""
    scales = replace(bench.scales, dtype=DType.E4M3)
    assert run(bench, scales=scales)[1] is scales


def test_scale_blocks(bench):
    """The kernel knows how many row blocks it is to write."""
    run(bench, scales=bench.scales)
    assert bench.parameter("scale_blocks") == 4


def test_grid(bench):
    """A warp for each quarter of an atom, eight a block, and no more than the device holds."""
    run(bench, scales=bench.scales)
    assert bench.cuda.launches[0].grid == (4, 1, 1)
    run(bench, scales=bench.upload(np.zeros((900, 2, 32, 4, 4), np.uint8)))
    assert bench.cuda.launches[1].grid == (4 * bench.library.device(0).sm_count, 1, 1)


def test_no_rows(bench):
    """Without rows and groups there is nothing to write, and nothing is launched."""
    x = replace(bench.arrays["x"], shape=(0, K))
    codes, scales = op(x, bench.plain["tensor_scales"], library=bench.library)
    assert (codes.shape, scales.shape) == ((0, 48), (0, 2, 32, 4, 4))
    assert bench.cuda.launches == []


def test_no_groups(bench):
    """Without groups in the grouped form the scale tensor is still made zero."""
    none = {name: replace(bench.arrays[name], shape=(0,)) for name in INDEX[1:]}
    run(bench, **none, scales=bench.scales)
    assert (bench.parameter("n_active"), bench.parameter("scale_blocks")) == (0, 4)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("x", {"dtype": DType.FP32}, "`x` must be bf16 or fp16, not fp32"),
        ("x", {"shape": (T, 6, 16)}, r"`x` must have the shape \[t, k\], not \[138, 6, 16\]"),
        ("x", {"shape": (T, 80)}, "`k` must be a multiple of 32, not 80"),
        ("x", {"strides": (128, 1)}, "`x` must be row-major without gaps"),
        ("tensor_scales", {"dtype": DType.BF16}, "`tensor_scales` must be fp32, not bf16"),
        ("tensor_scales", {"shape": (0,)}, "`e` must be at least 1 expert, not 0"),
        ("row_offsets", {"shape": (GROUPS,)}, "`row_offsets` must have at least 4 along"),
        ("row_offsets", {"dtype": DType.I64}, "`row_offsets` must be u32 or i32, not i64"),
        ("scale_offsets", {"shape": (2,)}, "`scale_offsets` must have at least n_active, 3, along"),
        ("expert_ids", {"dtype": DType.U32}, "`expert_ids` must be i32, not u32"),
    ],
)
def test_refused(bench, name, changes, message):
    """The error names the array and its form, and nothing is launched."""
    with pytest.raises(ProblemError, match=message):
        run(bench, **{name: replace(bench.arrays[name], **changes)})
    assert bench.cuda.launches == []


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("codes", {"shape": (T, 32)}, "`codes` must have x's k // 2, 48, along side 1, not 32"),
        ("codes", {"dtype": DType.I8}, "`codes` must be u8, not i8"),
        ("codes", {"is_read_only": True}, "`codes` is read-only"),
        ("codes", {"strides": (64, 1)}, "`codes` must be row-major"),
        ("scales", {"shape": (4, 1, 32, 4, 4)}, r"must have x\'s cdiv\(k, 64\), 2, along"),
        ("scales", {"shape": (4, 2, 512)}, r"cdiv\(k,64\), 32, 4, 4\], not \[4, 2, 512\]"),
        ("scales", {"dtype": DType.E5M2}, "`scales` must be e4m3 or u8, not e5m2"),
    ],
)
def test_refused_outputs(bench, name, changes, message):
    """An output of another problem is refused by name."""
    with pytest.raises(ProblemError, match=message):
        run(bench, **{name: replace(getattr(bench, name), **changes)})
    assert bench.cuda.launches == []


@pytest.mark.parametrize("name", INDEX)
def test_groups_are_whole(bench, name):
    """The three arrays that say how rows form groups come together."""
    with pytest.raises(ProblemError, match="must be given with"):
        run(bench, **{name: None})


def test_plain_has_one_tensor_scale(bench):
    """Without groups there is one tensor scale, of all rows."""
    with pytest.raises(ProblemError, match="must have 1 element without groups, not 3"):
        run(bench, **dict.fromkeys(INDEX))


def test_plain_needs_its_row_blocks(bench):
    """Without groups the host knows how many row blocks there must be."""
    scales = replace(bench.scales, shape=(1, 2, 32, 4, 4))
    with pytest.raises(ProblemError, match="`scale_blocks` must be at least 2, not 1"):
        op(**bench.plain, scales=scales, library=bench.library)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("row_offsets", [1, 50, 100, T], "`row_offsets` must start with 0, not 1"),
        ("row_offsets", [0, 50, 100, 137], "`row_offsets` must end with t = 138"),
        ("row_offsets", [0, 100, 50, T], "`row_offsets` must not fall: group 1 is 100 to 50"),
        ("expert_ids", [0, 1, 3], r"`expert_ids` must be -1 to 2, not 3 \(group 2\)"),
        ("scale_offsets", [0, 1, 1], "`scale_offsets` must be 2 for group 2, not 1"),
        ("tensor_scales", [1, -1, 1], r"must be positive and finite, not -1.0 \(expert 1\)"),
        ("tensor_scales", [1, np.inf, 1], r"must be positive and finite, not inf \(expert 1\)"),
        ("tensor_scales", [1, 1, np.nan], r"must be positive and finite, not nan \(expert 2\)"),
    ],
)
def test_debug(bench, name, values, message):
    """Debugging reads the groups back and says what is wrong before the launch."""
    wrong = bench.upload(np.array(values, bench.arrays[name].dtype.numpy))
    with pytest.raises(ProblemError, match=message):
        run(bench, debug=True, **{name: wrong})
    assert bench.cuda.launches == []


def test_debug_of_row_blocks(bench):
    """Debugging knows how many row blocks the groups need."""
    scales = replace(bench.scales, shape=(3, 2, 32, 4, 4))
    with pytest.raises(ProblemError, match="`scales` must have 4 row blocks for these groups"):
        run(bench, debug=True, scales=scales)


@pytest.mark.parametrize("form", ["plain", "grouped"])
def test_debug_of_what_is_right(bench, form):
    """What is right runs under debugging."""
    given = bench.plain if form == "plain" else bench.arrays
    op(**given, library=bench.library, debug=True)
    assert len(bench.cuda.launches) == 1


def test_no_wait_without_debug(bench):
    """A call does not wait for the GPU."""
    run(bench)
    assert [name for name in bench.cuda.calls if "Synchronize" in name or "DtoH" in name] == []


def test_prepare(bench):
    """A prepared launch is the op's, follows its arrays, and says its outputs in order."""
    prepared = op.prepare(**bench.arrays, codes=bench.codes, library=bench.library)
    prepared.rebind(scales=bench.scales)
    prepared(bench.cuda.new_stream())
    assert bench.parameter("scales") == bench.scales.pointer
    assert prepared.out == (bench.codes, bench.scales)


def test_public_name():
    """The op is found under `kernelpack.ops`."""
    assert ops.nvfp4_quantize is op
