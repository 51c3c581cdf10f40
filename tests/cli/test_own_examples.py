"""The kernels of examples/kernels are built and verified against their oracles."""

import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.kernels.folder import folders
from tests.kept import FOLDER, ROOT

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]
OWN = folders([ROOT / "examples" / "kernels"])


@pytest.mark.parametrize("own", OWN, ids=lambda own: own.stem)
def test_every_variant_is_right(kernelpack, own, tmp_path, monkeypatch):
    """Each variant does its telling cases under one interleaving, without a finding."""
    monkeypatch.setenv("KERNELPACK_CACHE_DIR", str(FOLDER))
    bundle = tmp_path / f"{own.stem}.kpk"
    assert kernelpack("build", own.path, "-o", bundle).code == 0
    said = kernelpack("verify", bundle, "--kernels", own.path, "--schedule", "lazy")
    assert said.code == 0, said.out
    assert {"sm_90a", "sm_100a"} <= {str(v.arch) for v in open_bundle(bundle).variants()}
