"""The NVFP4 grouped GEMM also compiles for the family target, whose code runs on B300 too."""

import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.spec.arch import Arch
from tests.machine_code.build import ROOT, build_in

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

NAME = "nvfp4_grouped_gemm.yaml"


@pytest.fixture
def manifest(tmp_path):
    """The manifest as it would be for sm_100f in the place of sm_100a."""
    text = (ROOT / "manifests" / NAME).read_text()
    path = tmp_path / NAME
    path.write_text(text.replace("sm_100a", "sm_100f"))
    return path


@pytest.mark.parametrize("toolchain", ["cuda-13.4", "cuda-12.9"])
def test_family_target_builds(tmp_path, manifest, toolchain):
    """Both releases compile every Blackwell tile for sm_100f."""
    changes = {"manifests": (manifest,), "targets": (Arch("sm_100f"),), "toolchain": toolchain}
    bundle = open_bundle(build_in(tmp_path, keep="out=bf16", **changes))
    assert {record.target for record in bundle.records()} == {"sm_100f"}
    assert (10, 3) in bundle.targets["sm_100f"]
