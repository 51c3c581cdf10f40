"""The kernels kernelpack knows the meaning of, by stem."""

from kernelpack.errors import ProblemError
from kernelpack.kernels.definition import Definition
from kernelpack.kernels.kv_cache_append.definition import KV_CACHE_APPEND
from kernelpack.kernels.kv_remap_indices.definition import KV_REMAP_INDICES
from kernelpack.kernels.lora_shrink_qkv.definition import LORA_SHRINK_QKV
from kernelpack.kernels.mla_decode_absorb.definition import MLA_DECODE_ABSORB
from kernelpack.kernels.mla_decode_attention.definition import MLA_DECODE_ATTENTION
from kernelpack.kernels.mla_decode_combine.definition import MLA_DECODE_COMBINE
from kernelpack.kernels.mla_decode_project.definition import MLA_DECODE_PROJECT
from kernelpack.kernels.nvfp4_grouped_gemm.definition import NVFP4_GROUPED_GEMM
from kernelpack.kernels.nvfp4_quantize.definition import NVFP4_QUANTIZE
from kernelpack.kernels.nvfp4_w4a16_grouped_gemm.definition import NVFP4_W4A16_GROUPED_GEMM
from kernelpack.kernels.sparse_mla_prefill.definition import SPARSE_MLA_PREFILL
from kernelpack.spec.nearest import nearest

KERNELS = {
    definition.stem: definition
    for definition in (
        KV_CACHE_APPEND,
        KV_REMAP_INDICES,
        LORA_SHRINK_QKV,
        MLA_DECODE_ABSORB,
        MLA_DECODE_ATTENTION,
        MLA_DECODE_COMBINE,
        MLA_DECODE_PROJECT,
        NVFP4_GROUPED_GEMM,
        NVFP4_QUANTIZE,
        NVFP4_W4A16_GROUPED_GEMM,
        SPARSE_MLA_PREFILL,
    )
}


def find(stem: str) -> Definition:
    """The kernel called `stem`.

    Raises:
        ProblemError: no kernel has that name; says the nearest.

    """
    if stem not in KERNELS:
        hint = nearest(stem, KERNELS) or f"known: {', '.join(KERNELS)}"
        raise ProblemError(f"no oracle says what kernel `{stem}` computes", hint=hint)
    return KERNELS[stem]
