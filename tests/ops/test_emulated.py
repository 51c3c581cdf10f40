"""The op on numpy: what runs, what is refused. The kernel writes ones, its launch is real."""

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.bundle.writer import write_ptx
from kernelpack.emulator.faults import Fault, Level
from kernelpack.errors import BundleError, KernelpackError, ProblemError, SelectionError
from kernelpack.formats.dtype import DType
from kernelpack.load.load import load
from kernelpack.ops import lora_shrink_qkv as op
from kernelpack.runtime.driver import Driver
from kernelpack.spec.artifact import Ptx
from tests.fakes.bundles import entry, provenance, write_bundle
from tests.fakes.driver import FakeCuda
from tests.fakes.variants import variant
from tests.verify import small

M, N, K, G = 10, 16, 72, 4
VARIANT = variant(arch="sm_100a", out="fp32", cluster="1", shared_bytes="0")
BF16 = DType.BF16.numpy


def kernel(limit="3"):
    """Writes 1.0 to the first `limit` * m * 16 elements of c."""
    return Ptx(
        text=f"""
.version 9.1
.target sm_100a
.address_size 64
.visible .entry {VARIANT.entry}(.param .align 64 .b8 a_map[128], .param .u64 p_c, .param .u64 p_b,
  .param .u64 p_offsets, .param .u64 p_ids, .param .u32 p_m, .param .u32 p_k)
{{
  .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [p_c];
  ld.param.u32 %r1, [p_m];
  mul.lo.u32 %r1, %r1, {limit};
  mul.lo.u32 %r1, %r1, 16;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r2, %r2, 128, %r3;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 ret;
  mad.wide.u32 %rd2, %r2, 4, %rd1;
  mov.b32 %r4, 0x3F800000;
  st.global.b32 [%rd2], %r4;
  ret;
}}"""
    )


def bundle(folder, text=None):
    """The bundle of VARIANT and its twin."""
    text = text or kernel()
    made = entry(VARIANT)
    known = {field: getattr(made, field) for field in made.__dataclass_fields__}
    path = write_bundle(folder / "x.kpk", [type(made)(**known | {"ptx_digest": text.digest})])
    write_ptx([text], path.with_suffix(".ptx.kpk"), provenance())
    return path


@pytest.fixture
def library(tmp_path):
    return ops.EmulatedLibrary(bundle(tmp_path))


def inputs(**changes):
    arrays = {
        "a": np.ones((M, K), BF16),
        "b": np.ones((G, 3 * N, K), BF16),
        "a_offsets": np.array([0, 4, 4, M], np.uint32),
        "expert_ids": np.array([2, 0, -1], np.int32),
    }
    return (arrays | changes).values()


def test_new_output(library):
    """Without an output a numpy array is made, of the shape and type asked for."""
    c = op(*inputs(), out_dtype="fp32", library=library)
    assert (type(c), c.shape, c.dtype, c.min(), c.max()) == (
        np.ndarray,
        (3, M, N),
        np.float32,
        1,
        1,
    )


def test_shown(library):
    """A prompt shows the bundle and how it is run."""
    assert repr(library).endswith("x.kpk, eager, seed 0, up to warn>")


def test_level(tmp_path):
    """What is watched for is a level or its name; another word is refused before any launch."""
    path = bundle(tmp_path)
    assert ops.EmulatedLibrary(path, level="strict").level is Level.STRICT
    with pytest.raises(ProblemError, match="no level `loud`"):
        ops.EmulatedLibrary(path, level="loud")


def test_given_output(library):
    """An output that is given is written and returned."""
    out = np.zeros((3, M, N), np.float32)
    assert op(*inputs(), out=out, library=library) is out
    assert out.all()


def test_m(library):
    """Rows of a beyond m are not computed."""
    offsets = np.array([0, 4, 4, 7], np.uint32)
    assert op(*inputs(a_offsets=offsets), m=7, out_dtype="fp32", library=library).shape == (3, 7, N)


def test_nothing_to_compute(library):
    """Without groups nothing runs, and an output holds zeros."""
    none = {"a_offsets": np.zeros(1, np.uint32), "expert_ids": np.zeros(0, np.int32)}
    out = np.ones((3, M, N), np.float32)
    assert op(*inputs(**none), out=out, library=library) is out
    assert not out.any()


def test_library_with_a_gpu(tmp_path):
    """numpy arrays run on the emulator whatever GPU is there; its bundle's PTX is used."""
    library = load(bundle(tmp_path), driver=Driver(FakeCuda()))
    assert op(*inputs(), out_dtype="fp32", library=library).all()


@pytest.mark.parametrize(
    ("changes", "options", "says"),
    [
        ({"a": [[1.0]]}, {}, "`a` is a list among numpy arrays"),
        ({"a": np.ones((M, K), np.complex64)}, {}, "`a` has the element type complex64"),
        ({"a": np.ones((M, K), np.float32)}, {}, "`a` must be bf16, not fp32"),
        ({"a": np.ones((K, M), BF16).T}, {}, "`a` must be row-major without gaps"),
        ({"a_offsets": np.array([0, 4, 4, M])}, {}, "`a_offsets` must be u32 or i32, not i64"),
        (
            {"a_offsets": np.array([0, 5, 4, M], np.uint32)},
            {},
            "`a_offsets` must not fall: group 1 is 5 to 4",
        ),
        (
            {"expert_ids": np.array([2, 0], np.int32)},
            {},
            "`a_offsets` must end with m = 10 after the 2 groups of `expert_ids`, not 4",
        ),
        ({"expert_ids": np.array([2, 4, -1], np.int32)}, {}, "must be -1 to 3, not 4"),
        (
            {},
            {"out": np.zeros((3, M, N + 8), np.float32)},
            "`out` must have b's n, 16, along side 2",
        ),
        ({}, {"stream": 1}, "`stream`: the emulator has none"),
    ],
)
def test_refused(library, changes, options, says):
    """What is not right is refused before anything runs; nothing is converted or copied."""
    with pytest.raises(ProblemError, match=says):
        op(*inputs(**changes), library=library, **{"out_dtype": "fp32", **options})


def test_read_only_output(library):
    """An output that may not be written is refused."""
    out = np.zeros((3, M, N), np.float32)
    out.flags.writeable = False
    with pytest.raises(ProblemError, match="`out` is read-only"):
        op(*inputs(), out=out, library=library)


def test_overlap(library):
    """An output that lies in an input is refused here too."""
    memory = np.zeros(max(M * K, 6 * M * N), BF16)
    arrays = inputs(a=memory[: M * K].reshape(M, K))
    out = memory[: 6 * M * N].view(np.float32).reshape(3, M, N)
    with pytest.raises(ProblemError, match="`out` overlaps `a`"):
        op(*arrays, out=out, library=library)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"sm_count": "x"}, "`sm_count` must be an integer, not 'x' of type str"),
        ({"sm_count": -3}, "`sm_count` must be at least 1, not -3"),
        ({"seed": "x"}, "`seed` must be an integer"),
        ({"seed": -1}, "`seed` must be at least 0, not -1"),
        ({"schedule": "zork"}, "no schedule `zork`"),
        ({"arch": "sm_999"}, "unknown architecture `sm_999`"),
    ],
)
def test_settings_refused(tmp_path, settings, says):
    """A setting that means nothing is refused when the library is made."""
    with pytest.raises(KernelpackError, match=says):
        ops.EmulatedLibrary(bundle(tmp_path), **settings)


def test_no_path():
    """What is not a path of a bundle is refused by its type."""
    with pytest.raises(BundleError, match="the path of a bundle is a int"):
        ops.EmulatedLibrary(3)


def test_finding(tmp_path):
    """A kernel that breaks a rule raises, with the variant, the place and the rule."""
    library = ops.EmulatedLibrary(bundle(tmp_path, kernel(limit="4")))
    with pytest.raises(Fault, match=r"lora_shrink_qkv\[arch=sm_100a.*bounds"):
        op(*inputs(), out_dtype="fp32", library=library)


def test_an_input_is_written(tmp_path):
    """A kernel that writes to what it may only read raises, with the variant and the array."""
    text = small.ptx(f"{small.DOUBLE} st.global.f32 [%rd3], %f1;")
    path = small.written(tmp_path / "x.kpk", [(small.variant(), text)])
    with pytest.raises(Fault, match=r"twice\[arch=sm_100a.*input `x` was written"):
        ops.EmulatedLibrary(path).call("twice", x=np.ones(5, np.float32))


def test_no_twin(tmp_path):
    """Without the PTX the missing file is named."""
    path = bundle(tmp_path)
    path.with_suffix(".ptx.kpk").unlink()
    with pytest.raises(BundleError, match=r"x\.ptx\.kpk: the PTX of this bundle is missing"):
        op(*inputs(), out_dtype="fp32", library=ops.EmulatedLibrary(path))


def test_no_kernel_for_the_target(tmp_path):
    """A bundle without the target's kernels is refused."""
    library = ops.EmulatedLibrary(bundle(tmp_path), arch="sm_90a")
    with pytest.raises(SelectionError, match="holds no `lora_shrink_qkv` for sm_90a"):
        op(*inputs(), library=library)


@pytest.mark.parametrize(
    ("arches", "expected"), [(["sm_90a"], "sm_90a"), (["sm_90a", "sm_100a"], "sm_100a")]
)
def test_target(tmp_path, arches, expected):
    """Where no target is named, sm_100a is pretended, or what the kernel was built for."""
    path = write_bundle(tmp_path / "x.kpk", [variant(arch=arch) for arch in arches])
    sizes = {"m": 1, "k": 8, "n_active": 1, "a_dtype": 9, "out_dtype": 9}
    chosen = ops.EmulatedLibrary(path).select("lora_shrink_qkv", sizes, range(2, 3))
    assert chosen.arch.name == expected


def test_no_variant(library):
    """A type that no variant makes is refused with those that there are."""
    with pytest.raises(SelectionError, match="`out_dtype` must be fp32, not fp16"):
        op(*inputs(), out_dtype="fp16", library=library)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"a_offset": np.ones(4, np.uint32)}, "has no array `a_offset`.*did you mean `a_offsets`"),
        ({"a": np.ones((M, K), np.float16)}, "`a` is float16; the kernel takes bf16"),
    ],
)
def test_arrays_of_a_run(library, changes, says):
    """Arrays for a kernel have the names and types of its arguments."""
    names = ("a", "b", "a_offsets", "expert_ids")
    arrays = {**dict(zip(names, inputs(), strict=True)), **changes}
    sizes = {"m": M, "k": K, "n": N, "n_active": 3, "g": G, "a_dtype": 9, "out_dtype": 10}
    with pytest.raises(ProblemError, match=f"(?s){says}"):
        library.run("lora_shrink_qkv", sizes, arrays, range(1, 9))


def test_settings(tmp_path):
    """Target, device, schedule and level are the library's."""
    library = ops.EmulatedLibrary(
        bundle(tmp_path), sm_count=8, schedule="lazy", seed=3, level=Level.STRICT
    )
    assert op(*inputs(), out_dtype="fp32", library=library).all()


def given(**changes):
    """The arrays of a launch by the manifest's names."""
    names = ("a", "b", "a_offsets", "expert_ids")
    return dict(zip(names, inputs(), strict=True)) | changes


SIZES = {"m": M, "n": N, "k": K, "g": G, "n_active": 3, "a_dtype": 9, "out_dtype": 10}


@pytest.mark.parametrize(
    ("sizes", "arrays", "what"),
    [
        ({"m": 9.0}, {}, "`m`: must be an integer, not 9.0"),
        ({"mm": 9}, {}, "no size `mm`"),
        ({}, {"a": [[1.0]]}, "`a` is a list, not a numpy array"),
        ({}, {"a": np.ones((M, K), np.float32)}, "`a` is float32; the kernel takes bf16"),
        ({}, {"a": np.ones((K, M), BF16)}, f"`a` must have the shape [{M}, {K}], not [{K}, {M}]"),
        ({}, {"a": np.ones((M - 1, K), BF16)}, f"`a` must have the shape [{M}, {K}], not [{M - 1}"),
        ({}, {"a": np.ones(M * K - 1, BF16)}, f"`a` must have the shape [{M}, {K}]"),
        ({}, {"a": np.ones((1, M, K), BF16)}, f"`a` must have the shape [{M}, {K}]"),
        ({}, {"expert_id": np.ones(3, np.int32)}, "has no array `expert_id`"),
        ({}, {"a": np.ones((K, M), BF16).T}, "`a` must be row-major without gaps, not of strides"),
        ({}, {"a": np.ones((M, K), BF16)[::-1]}, "`a` must be row-major without gaps"),
        (
            {},
            {"a": np.ones(M * K + 1, BF16)[1:].reshape(M, K)},
            "`a` must be aligned to 16 bytes, and begins at byte 2 of its memory",
        ),
        ({}, {"c": np.zeros(3 * M * N + 1, np.float32)[1:]}, "`c` must be aligned to 16 bytes"),
    ],
)
def test_what_is_not_the_kernels(library, sizes, arrays, what):
    """A direct run is checked against the manifest: types, shapes and names."""
    with pytest.raises(ProblemError) as error:
        library.run("lora_shrink_qkv", {**SIZES, **sizes}, given(**arrays), range(2, 3))
    assert what in str(error.value)


@pytest.mark.parametrize("abis", [1, [1], "2"])
def test_no_range(library, tmp_path, abis):
    """ABIs are a range, of both libraries."""
    gpu = load(bundle(tmp_path), driver=Driver(FakeCuda()))
    for ask in (
        lambda: library.run("lora_shrink_qkv", SIZES, given(), abis),
        lambda: gpu.select("lora_shrink_qkv", SIZES, 0, abis),
        lambda: gpu.known("lora_shrink_qkv", SIZES, abis),
    ):
        with pytest.raises(ProblemError, match="`abis` must be a range, such as"):
            ask()


def test_another_abi(library):
    """A kernel of another ABI is refused with the one that it has."""
    with pytest.raises(BundleError, match="has kernel ABI 2, this version calls 3, 4"):
        library.run("lora_shrink_qkv", SIZES, given(), range(3, 5))


@pytest.mark.parametrize("a", [np.ones((M + 5, K), BF16), np.ones(M * K, BF16)])
def test_more_rows_and_flat_memory(library, a):
    """An array may have more rows than are asked for, or be flat."""
    found = library.run("lora_shrink_qkv", SIZES, given(a=a), range(2, 3))
    assert found["c"].shape == (3, M, N)


def test_a_part_of_an_array(library):
    """A part that begins where the kernel may read is as good as the whole."""
    a = np.ones(M * K + 8, BF16)[8:]
    assert library.run("lora_shrink_qkv", SIZES, given(a=a), range(2, 3))["c"].all()


def test_an_output_that_a_run_is_given(library):
    """It is what memory held before; what is returned is another."""
    before = np.zeros((3, M, N), np.float32)
    found = library.run("lora_shrink_qkv", SIZES, given(c=before), range(2, 3))
    assert found["c"].all()
    assert not before.any()
