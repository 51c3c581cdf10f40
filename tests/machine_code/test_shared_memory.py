"""A size of shared memory that is too small is refused when it is built, on every target."""

import pytest

from kernelpack.errors import CompileError
from kernelpack.manifest.expand import expand
from kernelpack.manifest.reader import parse
from kernelpack.manifest.schema import load_document
from kernelpack.render.render import render
from kernelpack.spec.arch import Arch
from tests.kept import ROOT, compile_here

pytestmark = pytest.mark.toolchain

FEW_BARRIERS = ("BARRIER_BYTES: 512", "BARRIER_BYTES: 64")
NO_BARRIERS = ("+ BARRIER_BYTES + PARTS_BYTES", "+ PARTS_BYTES")
NO_BOXES = ("+ BOXES_BYTES + BARRIER_BYTES", "+ BARRIER_BYTES")
NO_PARTS = ("PARTS_BYTES: ", "PARTS_BYTES: 0 * ")
HALF = ("SHARED_BYTES: LIMIT_SHARED", "SHARED_BYTES: LIMIT_SHARED // 2")
"""What is in a manifest, and what a person might write in its place."""

LORA, GEMM, W4A16 = "lora_shrink_qkv", "nvfp4_grouped_gemm", "nvfp4_w4a16_grouped_gemm"
MLA = "sparse_mla_prefill"
RINGS = [
    (LORA, "sm_90a"),
    (LORA, "sm_100a"),
    (GEMM, "sm_90a"),
    (GEMM, "sm_100a"),
    (W4A16, "sm_90a"),
]
SUMS = [(stem, arch) for stem, arch in RINGS if (stem, arch) != (GEMM, "sm_100a")]
"""Those that split K, and keep parts of the sum in shared memory."""

MISTAKES = [
    *((stem, arch, mistake, {}) for stem, arch in RINGS for mistake in (FEW_BARRIERS, NO_BARRIERS)),
    *((stem, arch, NO_PARTS, {}) for stem, arch in SUMS),
    (GEMM, "sm_100a", NO_BOXES, {}),
    *(
        (MLA, "sm_100a", HALF, {"HEADS": h, "ROW": row})
        for h, row in [(128, "bf16_576"), (64, "bf16_512")]
    ),
    *((MLA, "sm_100a", HALF, {"HEADS": h, "ROW": "fp8_576"}) for h in (64, 128)),
    (MLA, "sm_100a", HALF, {"ROW": "fp8_656"}),
    *((MLA, "sm_90a", HALF, {"HEADS": h}) for h in (8, 64)),
]


@pytest.mark.parametrize(("stem", "arch", "mistake", "axes"), MISTAKES)
def test_too_small(stem, arch, mistake, axes):
    """The compiler stops at the map of shared memory."""
    text = (ROOT / "manifests" / f"{stem}.yaml").read_text()
    assert mistake[0] in text
    changed = load_document(parse(text.replace(*mistake), f"{stem}.yaml"))
    listed = expand(changed, [Arch(arch)])
    variant = next(v for v in listed if axes.items() <= dict(v.axes).items())
    with pytest.raises(CompileError, match="static assertion failed") as refused:
        compile_here(render(variant, ROOT / "templates"), arch)
    assert "shared memory is full" in str(refused.value) or "SHARED_BYTES" in str(refused.value)
