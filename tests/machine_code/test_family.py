"""What runs on B300: sm_103a's own machine code, and that of the family target sm_100f."""

import pytest

from kernelpack.bundle.reader import Bundle, open_bundle
from kernelpack.spec.arch import Arch
from tests.machine_code.build import ROOT, build_in

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

NAME = "nvfp4_grouped_gemm.yaml"
SAMPLE = (
    "kv_remap_indices or (dtype=bf16 and out=bf16 and prefill and tile_flat=48 and tile_tokens=64)"
    " or (out=bf16 and rows=tokens) or (in=bf16 and plain) or (row=fp8_656)"
)
"""One or two of each kernel."""


@pytest.fixture
def manifest(tmp_path):
    """The manifest as it would be for sm_100f instead of sm_100a."""
    text = (ROOT / "manifests" / NAME).read_text()
    path = tmp_path / NAME
    path.write_text(text.replace("sm_100a", "sm_100f"))
    return path


def built(folder, arch: str, **changes) -> Bundle:
    """The sample for one target."""
    folder.mkdir()
    return open_bundle(build_in(folder, targets=(Arch(arch),), **changes))


@pytest.mark.parametrize("toolchain", ["cuda-13.4", "cuda-12.9"])
def test_family_target_builds(tmp_path, manifest, toolchain):
    """Both releases compile a Blackwell tile for sm_100f."""
    changes = {"manifests": (manifest,), "toolchain": toolchain}
    bundle = built(tmp_path / "f", "sm_100f", keep="out=bf16 and tile_tokens=8", **changes)
    assert {record.target for record in bundle.records()} == {"sm_100f"}
    assert (10, 3) in bundle.targets["sm_100f"]


def ptx(bundle: Bundle) -> dict[str, str]:
    """The PTX of each entry by its symbol, less what names the target."""
    texts = {record.symbol: bundle.ptx(record.ptx_digest).text for record in bundle.records()}
    names = bundle.targets
    return {symbol: _without(text, names) for symbol, text in texts.items()}


def _without(text: str, names) -> str:
    for name in names:
        text = text.replace(name, "TARGET")
    return text


def test_sm_103a_is_the_ptx_of_sm_100a(tmp_path):
    """What the emulator proves of a kernel for a B200 it proves of that for a B300."""
    b200, b300 = (built(tmp_path / arch, arch, keep=SAMPLE) for arch in ("sm_100a", "sm_103a"))
    assert b300.targets == {"sm_103a": ((10, 3),)}
    assert len(b300) == len(b200) >= 5
    assert ptx(b300) == ptx(b200)
