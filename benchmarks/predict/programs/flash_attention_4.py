"""Launch FlashAttention's forward kernel for Blackwell once, by its own host code.

`flash_attention_4.py FOLDER DIM CAUSAL BATCH HEADS TOKENS [check]`. FOLDER has the unpacked wheels
`cute` (CuTe-DSL) and `quack`, the repository as `flash-attention`, and `libcute_runtime.so` (of
cute_runtime.cpp). What was compiled is kept there in `made`. Tensors are (batch, tokens, heads,
values) of bf16. `check` fills them and compares with a reference.
"""

import ctypes
import math
import os
import re
import subprocess
import sys
import types
from importlib import import_module
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))

from benchmarks.predict.programs.cudnn_sdpa import compare, reference
from conformance.device import Device


class Absent(type):
    """In place of torch, of which the kernel takes nothing: every name is a type."""

    def __getattr__(cls, name: str) -> "Absent":
        if name.startswith("__"):
            raise AttributeError(name)
        made = Absent(name, (), {})
        setattr(cls, name, made)
        return made


def find(folder: str) -> None:
    """Let the kernel's modules be imported, and not what their packages import."""
    os.environ.update(CUTE_DSL_ARCH="sm_100a", CUTE_DSL_KEEP="ptx")
    os.environ["CUTE_DSL_LIBS"] = f"{folder}/libcute_runtime.so"
    os.environ["CUTE_DSL_DUMP_DIR"] = f"{folder}/ptx"
    Path(f"{folder}/ptx").mkdir(exist_ok=True)
    sys.path[:0] = [f"{folder}/cute", f"{folder}/cute/nvidia_cutlass_dsl/python_packages"]
    places = {"flash_attn": "flash-attention/flash_attn", "quack": "quack/quack"}
    places["flash_attn.cute"] = "flash-attention/flash_attn/cute"
    for name, place in places.items():
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [f"{folder}/{place}"]
    import_module("tvm_ffi")  # which would take what is here for torch
    sys.modules["torch"] = Absent("torch", (), {})


def compiled(dim: int, causal: bool, tokens: int) -> Any:
    """The kernel as FlashAttention's interface chooses it, behind pointers and sizes."""
    import cutlass
    from cutlass import cute

    forward = import_module("flash_attn.cute.flash_fwd_sm100").FlashAttentionForwardSm100
    pairs = not causal and dim == 128 and tokens > 256
    kernel = forward(
        dim, dim, is_causal=causal, is_persistent=not causal, use_2cta_instrs=pairs,
        q_stage=2 if tokens > 128 else 1,
    )  # fmt: skip
    pointer = cute.runtime.make_ptr(cutlass.BFloat16, 16, cute.AddressSpace.gmem, assumed_align=16)

    @cute.jit
    def host(
        q: cute.Pointer, k: cute.Pointer, v: cute.Pointer, o: cute.Pointer,
        batch: cutlass.Int32, heads: cutlass.Int32, length: cutlass.Int32,
        scale: cutlass.Float32, stream: Any = None,
    ) -> None:  # fmt: skip
        row = cutlass.Int64(heads) * dim
        layout = cute.make_layout((batch, length, heads, dim), stride=(row * length, row, dim, 1))
        given = [cute.make_tensor(at, layout) for at in (q, k, v, o)]
        kernel(*given, None, scale, stream=stream)

    stream = cute.runtime.make_fake_stream(use_tvm_ffi_env_stream=False)
    sizes = (cutlass.Int32(0),) * 3
    options = "--enable-tvm-ffi"
    return cute.compile(
        host, *(pointer,) * 4, *sizes, cutlass.Float32(0), stream=stream, options=options
    )


def made(folder: str, dim: int, causal: bool, tokens: int) -> tuple[Path, str]:
    """The host code as a library and the PTX, compiled if they are not there."""
    path = Path(folder) / "made" / f"{dim}_{int(causal)}_{min(tokens, 257)}.so"
    if not path.is_file():
        find(folder)
        path.parent.mkdir(exist_ok=True)
        function = compiled(dim, causal, tokens)
        function.export_to_c(str(path.with_suffix(".o")), "launch")
        path.with_suffix(".ptx").write_text(function.__ptx__)
        libraries = (
            f"{folder}/libcute_runtime.so",
            import_module("tvm_ffi.libinfo").find_libtvm_ffi(),
        )
        words = ["g++", "-shared", str(path.with_suffix(".o")), *libraries, "-o", str(path)]
        subprocess.run(words, check=True)
    return path, path.with_suffix(".ptx").read_text()


def main(folder: str, *words: str) -> int:
    checked = words[-1] == "check"
    dim, causal, batch, heads, tokens = (int(word) for word in words[:5])
    (library, text), device = made(folder, dim, bool(causal), tokens), Device()
    sizes = re.findall(r"\.param [^\n]*param_\d+(?:\[(\d+)\])?[,\n]", text)
    maps = [index for index, size in enumerate(sizes) if size == "128"]
    runtime, kept = ctypes.CDLL(f"{folder}/libcute_runtime.so"), text.encode()
    runtime.take_ptx(kept, (ctypes.c_int * len(maps))(*maps), len(maps))
    shape, rng = (batch, tokens, heads, dim), np.random.default_rng(1)
    if checked:
        arrays = [rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for _ in range(4)]
        places = [device.put(array) for array in arrays]
    else:
        places = [device.room(2 * math.prod(shape)) for _ in range(4)]
    launch = import_module("tvm_ffi").load_module(str(library)).launch
    launch(*(at.value for at in places), batch, heads, tokens, 1 / math.sqrt(dim), 0)
    if not checked:
        return device.cuda.cudaDeviceSynchronize()
    device.get(places[3], arrays[3])
    return compare(reference(*arrays[:3], causal=bool(causal)), arrays[3])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
