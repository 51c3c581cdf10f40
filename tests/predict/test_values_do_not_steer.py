"""A launch of zeros does what one of random numbers does: their warps run as many instructions."""

import pytest

from kernelpack.emulator.call import call
from kernelpack.emulator.ptx.parser import parse
from kernelpack.emulator.run import run
from kernelpack.kernels.registry import known
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.predict.inputs import prepared
from kernelpack.predict.problem import steering
from kernelpack.render.render import render
from kernelpack.spec.arch import Arch
from kernelpack.spec.select import select
from tests.kept import ROOT, compiled

pytestmark = pytest.mark.toolchain

HOPPER = Arch("sm_90a")
PROBLEMS = {
    "lora_shrink_qkv": {"m": "64", "k": "1024"},
    "nvfp4_w4a16_grouped_gemm": {"t": "8", "n": "256", "k": "1024", "e": "2", "n_active": "2"},
    "sparse_mla_prefill": {"t": "2", "h": "16", "topk": "512", "blocks": "16"},
    "mla_decode_attention": {"t": "1", "h": "16", "topk": "512", "partitions": "2", "blocks": "16"},
}


@pytest.mark.parametrize("stem", PROBLEMS)
def test_zeros_take_as_many_instructions(stem):
    """Maxima that never rise and products that are zero change no kernel's way."""
    definition = known()[stem]
    case = definition.case(PROBLEMS[stem])
    sizes = {**case.sizes, "sm_count": 2}
    variants = expand(load(ROOT / "manifests" / f"{stem}.yaml"), [HOPPER])
    variant = select(variants, sizes, HOPPER.capabilities[0])
    program = parse(compiled(render(variant, ROOT / "templates"), "sm_90a").text)
    zeros = prepared(program, variant, sizes, steering(definition, case, variant, sizes))
    random = call(program, variant, sizes, definition.inputs(case)).result
    assert random.steps == run(zeros.program, zeros.plan, zeros.memory).steps
