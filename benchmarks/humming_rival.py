"""humming-kernels' W4A16 grouped GEMM as a rival: NVFP4 weights, configurations from a file.

The file has `best`, a list of {shape_E_m_N_K, mode, config}; a configuration is a line of words
like `wgmma b64x256x128 w64x64x64 st4 cta1 sk0 ws1 tma1`: instruction, block, warp, stages, CTAs a
multiprocessor, stream-K, warp specialisation, TMA. Kernels are compiled when they are asked for.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

MODE = "nvfp4-a16"
WORDS = {  # a word's pattern: the field, and how its value is read
    r"b(\d+x\d+x\d+)": ("block_shape", lambda text: tuple(map(int, text.split("x")))),
    r"w(\d+x\d+x\d+)": ("warp_shape", lambda text: tuple(map(int, text.split("x")))),
    r"st(\d+)": ("num_stages", int),
    r"cta(\d+)": ("num_ctas_per_sm", int),
    r"sk([01])": ("use_stream_k", lambda text: text == "1"),
    r"ws([01])": ("use_warp_spec", lambda text: text == "1"),
    r"tma([01])": ("use_tma", lambda text: text == "1"),
    r"smem_reuse_mode=(\w+)": ("smem_reuse_mode", str),
    r"raster_group_m=(\d+)": ("raster_group_m", int),
    r"producer_stage_unroll=(\d+)": ("producer_stage_unroll", int),
}


def parse(line: str) -> dict[str, Any]:
    """A line of words as the rival's fields; other words say what it measured."""
    instruction, *words = line.split()
    fields: dict[str, Any] = {"mma_type": instruction}
    for word in words:
        for pattern, (field, read) in WORDS.items():
            if match := re.fullmatch(pattern, word):
                fields[field] = read(match[1])
    return fields


class Humming:
    """The rival, with the configurations of a file."""

    def __init__(self, configurations: Path) -> None:
        self.best = json.loads(configurations.read_text())["best"]

    def calls(self, e: int, m: int, n: int, k: int, sets: int) -> dict[str, list[Any]]:
        """Calls of every configuration that runs, one a set of weights."""
        from humming.config import ComputeConfig
        from humming.testing.tuning import generate_heuristics_configs

        compute = ComputeConfig(gemm_type="grouped_contiguous")
        layer, weights = _weights(e, n, k, compute)
        candidates = [generate_heuristics_configs(layer, compute, [e * m])[0]]
        listed = [one for one in self.best if one["shape_E_m_N_K"] == [e, m, n, k]]
        candidates += [parse(one["config"]) for one in listed if one["mode"].startswith(MODE)]
        copies = [weights]
        copies += [{name: x.clone() for name, x in weights.items()} for _ in range(sets - 1)]
        launches = {
            f"humming_{i}": _launches(layer, compute, fields, copies, (e, m, n, k))
            for i, fields in enumerate(candidates)
        }
        return {name: calls for name, calls in launches.items() if calls}


def _weights(e: int, n: int, k: int, compute: Any) -> tuple[Any, dict[str, torch.Tensor]]:
    """Its layer and tensors: eight experts quantised by its own tools, and repeated."""
    from humming.config import LayerConfig
    from humming.testing.runner import KernelTestCase, KernelTestRunner

    made = min(e, 8)
    layer = LayerConfig(
        sm_version=90,
        shape_n=n,
        shape_k=k,
        num_experts=made,
        b_dtype="float4e2m1",
        a_dtype="bfloat16",
        c_dtype="bfloat16",
        bs_dtype="float8e4m3",
        weight_scale_group_size=16,
        weight_scale_type="group",
        weight_scale_2_type="tensor",
    )
    case = KernelTestCase(name="rival", layer_config=layer, compute_config=compute, top_k=1)
    runner = KernelTestRunner(case)
    tensors = {
        name: x.repeat(e // made, *[1] * (x.ndim - 1)) if x.shape[0] == made else x
        for name, x in runner.kernel_tensors.items()
    }
    return replace(runner.layer_config, num_experts=e), tensors


def _launches(
    layer: Any, compute: Any, fields: dict[str, Any], copies: list[Any], shape: tuple[int, ...]
) -> list[Any]:
    """Launches of one configuration; none where the rival refuses it."""
    from humming import ops
    from humming.kernel.humming import HummingKernel

    e, m, n, k = shape
    try:
        kernel = HummingKernel.prepare_kernels(
            layer.to_str(),
            compute.to_str(),
            [(0, 1 << 30, fields)],
            device=torch.cuda.current_device(),
        )
    except (RuntimeError, AssertionError) as error:
        print("refused:", fields, error, flush=True)
        return []
    shared = {
        "configs": kernel,
        "outputs": torch.empty(e * m, n, device="cuda", dtype=torch.bfloat16),
        "locks": torch.zeros(2048, device="cuda", dtype=torch.int32),
        "top_k": 1,
        "inputs": torch.randn(e * m, k, device="cuda").bfloat16(),
        "expert_layout": torch.arange(0, e * m + 1, m, device="cuda"),
    }
    return [lambda w=w: ops.launch_kernel(**shared, **w) for w in copies]
