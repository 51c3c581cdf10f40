"""The calls a user makes, one a kernel: arrays of any framework in, a launch out."""

from kernelpack.ops.arrays import DeviceArray
from kernelpack.ops.chain import ChainOp
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.ops.kv_cache_append import kv_cache_append
from kernelpack.ops.kv_remap_indices import kv_remap_indices
from kernelpack.ops.lora_shrink_qkv import lora_shrink_qkv
from kernelpack.ops.mla_decode_absorb import mla_decode_absorb
from kernelpack.ops.mla_decode_attention import mla_decode_attention
from kernelpack.ops.mla_decode_combine import mla_decode_combine
from kernelpack.ops.mla_decode_fp8 import mla_decode_fp8
from kernelpack.ops.mla_decode_project import mla_decode_project
from kernelpack.ops.nvfp4_grouped_gemm import nvfp4_grouped_gemm
from kernelpack.ops.nvfp4_quantize import nvfp4_quantize
from kernelpack.ops.nvfp4_w4a16_grouped_gemm import nvfp4_w4a16_grouped_gemm
from kernelpack.ops.op import Op
from kernelpack.ops.sparse_mla_prefill import sparse_mla_prefill

__all__ = [
    "DeviceArray",
    "EmulatedLibrary",
    "kv_cache_append",
    "kv_remap_indices",
    "lora_shrink_qkv",
    "mla_decode_absorb",
    "mla_decode_attention",
    "mla_decode_combine",
    "mla_decode_fp8",
    "mla_decode_project",
    "nvfp4_grouped_gemm",
    "nvfp4_quantize",
    "nvfp4_w4a16_grouped_gemm",
    "sparse_mla_prefill",
]

OPS = {name: value for name, value in dict(globals()).items() if isinstance(value, Op | ChainOp)}
"""Every op, by its name."""
