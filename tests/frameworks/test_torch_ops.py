"""The ops under torch's names, with a stand-in for torch; tests/gpu has torch itself."""

import sys

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.errors import KernelpackError
from kernelpack.formats.dtype import DType
from kernelpack.frameworks import torch_ops
from kernelpack.frameworks.fill import FACES, Face
from tests.fakes.torch import (
    FakeTorch,
    Kind,
    Tensor,
    bfloat16,
    float8_e4m3fn,
    float32,
    int32,
    uint8,
)
from tests.ops.test_emulated import K, M, N, bundle, inputs

T, E, W = 138, 3, 136
CODES, WEIGHTS = ((T, 48), uint8), ((E, W, 48), uint8)
IDS, TENSOR = ((3,), float32), ((1,), float32)
LORA = (((M + 2, K), bfloat16), ((4, 3 * N, K), bfloat16), IDS, IDS)


@pytest.fixture
def torch(monkeypatch):
    made = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", made)
    monkeypatch.setattr(torch_ops, "_DEFINED", {})
    return made


@pytest.fixture
def tensors():
    return [Tensor(array) for array in inputs()]


@pytest.fixture
def library(tmp_path):
    return ops.EmulatedLibrary(bundle(tmp_path))


def empty(shape, kind):
    return Tensor(np.zeros(shape, kind.numpy))


def test_schemas(torch):
    """Each op has a plain overload, and one that fills what it is given and returns nothing."""
    torch_ops.register()
    decode = {f"mla_decode_{step}" for step in ("absorb", "attention", "fp8")}
    in_place = {"kv_cache_append", *decode}
    assert set(torch.schemas) == set(FACES) | {f"{name}.out" for name in set(FACES) - in_place}
    assert torch.schemas["kv_cache_append"] == (
        "kv_cache_append(Tensor latent, *, Tensor? rope=None, Tensor? slots=None, "
        "Tensor? row_offsets=None, Tensor? table=None, Tensor? lengths=None, "
        "bool power_of_two=False, Tensor(a!) kv, Tensor(b!)? kv_scales=None) -> ()"
    )
    assert torch.schemas["nvfp4_quantize"] == (
        "nvfp4_quantize(Tensor x, Tensor tensor_scales, *, Tensor? row_offsets=None, "
        "Tensor? scale_offsets=None, Tensor? expert_ids=None) -> (Tensor, Tensor)"
    )
    assert torch.schemas["lora_shrink_qkv.out"] == (
        "lora_shrink_qkv.out(Tensor a, Tensor b, Tensor a_offsets, Tensor expert_ids, *, "
        "Tensor(a!) out) -> ()"
    )


def test_a_schema_without_keywords():
    """Where an op has arrays alone, nothing says that keywords follow."""
    face = Face(call=print, inputs=("x",), traced=lambda _: [])
    assert torch_ops.schemas(face, "twice") == {
        "twice": "twice(Tensor x) -> (Tensor)",
        "twice.out": "twice.out(Tensor x, *, Tensor(a!) out) -> ()",
    }


def test_every_overload_runs_and_is_traced(torch):
    """Each is there for both kinds of memory, and for tensors without any."""
    torch_ops.register()
    assert set(torch.run) == {(name, b) for name in torch.schemas for b in ("CPU", "CUDA")}
    assert set(torch.fakes) == {f"kernelpack::{name}" for name in torch.schemas}


def test_plain(torch, tensors, library):
    """The plain overload makes its output, on the CPU by the emulator."""
    torch_ops.register(library)
    out = torch.call("lora_shrink_qkv", *tensors, m=M, out_dtype=float32)
    assert (out.shape, out.dtype) == ((3, M, N), float32)
    assert (out.values == 1).all()


def test_out(torch, tensors, library):
    """`.out` fills what it is given."""
    torch_ops.register(library)
    out = empty((3, M, N), float32)
    assert torch.call("lora_shrink_qkv.out", *tensors, out=out) is None
    assert (out.values == 1).all()


@pytest.mark.parametrize(
    ("name", "given", "options", "made"),
    [
        ("lora_shrink_qkv", LORA, {}, [((3, M + 2, N), bfloat16)]),
        ("lora_shrink_qkv", LORA, {"m": 7, "out_dtype": float32}, [((3, 7, N), float32)]),
        ("nvfp4_grouped_gemm", (CODES, WEIGHTS, *(IDS,) * 6), {}, [((T, W), bfloat16)]),
        (
            "nvfp4_w4a16_grouped_gemm",
            (((T, 96), bfloat16), WEIGHTS, *(IDS,) * 4),
            {"out_dtype": float32},
            [((T, W), float32)],
        ),
        ("kv_remap_indices", (((5, 7), int32), *(IDS,) * 2), {}, [((5, 7), int32)]),
        (
            "nvfp4_quantize",
            (((T, 96), bfloat16), TENSOR),
            {},
            [((T, 48), uint8), ((2, 2, 32, 4, 4), uint8)],
        ),
        (
            "nvfp4_quantize",
            (((T, 96), bfloat16), IDS),
            dict.fromkeys(("row_offsets", "scale_offsets", "expert_ids"), IDS),
            [((T, 48), uint8), ((4, 2, 32, 4, 4), uint8)],
        ),
    ],
)
def test_shapes(torch, name, given, options, made):
    """Tensors without memory have the shape and type that the op would make."""
    torch_ops.register()
    words = {w: empty(*v) if isinstance(v, tuple) else v for w, v in options.items()}
    found = torch.fakes[f"kernelpack::{name}"](*(empty(*each) for each in given), **words)
    outputs = found if isinstance(found, tuple) else (found,)
    assert [(out.shape, out.dtype) for out in outputs] == made


def test_out_of_shapes_is_nothing(torch):
    """`.out` of tensors without memory does nothing."""
    torch_ops.register()
    assert torch.fakes["kernelpack::lora_shrink_qkv.out"](out=empty((1,), uint8)) is None


def test_another_library(torch, tensors, library):
    """Registering again defines nothing anew; the ops take their kernels from the new library."""
    torch_ops.register()
    torch_ops.register(library)
    out = torch.call("lora_shrink_qkv", *tensors, m=M, out_dtype=float32)
    assert (out.values == 1).all()


def test_fp8_is_bytes(torch, monkeypatch):
    """Scales may be float8 tensors, which not every torch exports."""
    seen = {}
    monkeypatch.setattr(torch_ops, "fill", lambda _face, arrays, **_: seen.update(arrays))
    torch_ops.register()
    scales = empty((E, 2, 2, 32, 4, 4), float8_e4m3fn)
    given = [empty(*IDS), empty(*IDS), scales, *(empty(*IDS) for _ in range(3))]
    torch.call("nvfp4_w4a16_grouped_gemm.out", *given, out=empty((1,), bfloat16))
    assert seen["b_scales"].dtype == Kind(DType.U8.numpy)


def test_in_place(torch, monkeypatch):
    """An op that writes a cache takes it by its keyword, and passes choices on."""
    seen = {}
    monkeypatch.setattr(torch_ops, "fill", lambda _face, arrays, **_: seen.update(arrays))
    torch_ops.register()
    given = {"rope": empty(*IDS), "kv": empty((9, 640), float8_e4m3fn), "power_of_two": True}
    assert torch.call("kv_cache_append", empty(*IDS), **given) is None
    assert (seen["kv"].dtype, seen["power_of_two"]) == (Kind(DType.U8.numpy), True)
    assert torch.fakes["kernelpack::kv_cache_append"](empty(*IDS), **given) is None


def test_torch_is_missing(monkeypatch):
    """Without torch, the error says what to install."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(KernelpackError, match="pip install torch"):
        torch_ops.register()
