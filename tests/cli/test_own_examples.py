"""The kernels of examples/kernels are built and verified against their oracles."""

import shutil

import numpy as np
import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.formats.dtype import DType
from kernelpack.kernels.folder import folders
from kernelpack.manifest.schema import load
from kernelpack.ops import EmulatedLibrary
from tests.kept import FOLDER, ROOT

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]
OWN = folders([ROOT / "examples" / "kernels"])


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Users are in folders of their own; what was made is kept."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERNELPACK_CACHE_DIR", str(FOLDER))


@pytest.mark.parametrize("own", OWN, ids=lambda own: own.stem)
def test_every_variant_is_right(kernelpack, own, tmp_path):
    """Each variant does its telling cases under one interleaving, without a finding."""
    bundle = tmp_path / f"{own.stem}.kpk"
    assert kernelpack("build", own.path, "-o", bundle).code == 0
    said = kernelpack("verify", bundle, "--kernels", own.path, "--schedule", "lazy")
    assert said.code == 0, said.out
    assert {"sm_90a", "sm_100a"} <= {str(v.arch) for v in open_bundle(bundle).variants()}


SEEDED = [
    ("silu", "PER_THREAD, n)", "PER_THREAD, n - 1)"),
    ("silu", "1.0f + __expf(-value)", "1.0f + __expf(value)"),
    ("rms_norm", "    __syncthreads();\n", ""),
    ("rms_norm", "float(weight.at[j])", "float(weight.at[0])"),
    ("silu_mul_fp8", "    __syncthreads();\n", ""),
    ("silu_mul_fp8", "pair >> 8", "pair & 0xFF"),
    ("silu_mul_fp8", "most == 0 ? 1.0f", "false ? 1.0f"),
]
"""Faults in the examples' templates."""
KEEP = {"silu": "fp32", "rms_norm": "bf16 and width=1024", "silu_mul_fp8": "bf16 and threads=128"}
"""A variant of each."""


@pytest.mark.parametrize(("stem", "old", "new"), SEEDED)
def test_a_fault_is_found(kernelpack, stem, old, new, tmp_path):
    """The oracle, or the emulator's checks, see what is wrong."""
    folder = tmp_path / stem
    shutil.copytree(ROOT / "examples" / "kernels" / stem, folder)
    template = folder / f"{stem}.cu.j2"
    text = template.read_text()
    assert old in text
    template.write_text(text.replace(old, new))
    keep = f"sm_90a and {KEEP[stem]}"
    said = kernelpack("verify", folder, "-k", keep, "--schedule", "lazy")
    assert said.code == 1, said.out


def test_a_call_by_the_names_of_the_manifest(kernelpack):
    """Outputs of two types are returned, the workspace is not."""
    folder = ROOT / "examples" / "kernels" / "silu_mul_fp8"
    words = ("-k", "sm_90a and bf16", "-o", "silu.kpk")
    assert kernelpack("build", folder, *words).code == 0
    x = np.ones((2, 16), DType.BF16.numpy)
    q, scale = EmulatedLibrary("silu.kpk").call("silu_mul_fp8", x=x)
    assert (q.dtype, scale.dtype) == (DType.E4M3.numpy, np.float32)
    assert (q.astype(np.float32) == 448).all()
    np.testing.assert_allclose(scale * 448, 1 / (1 + np.exp(-1)), rtol=1e-5)


def test_scales_of_a_larger_array():
    """An array may begin where the kernel's own stores allow: a scale at 4 bytes, codes at 8."""
    manifest = load(ROOT / "examples" / "kernels" / "silu_mul_fp8" / "silu_mul_fp8.yaml")
    aligned = {name: argument.align for name, argument in manifest.arguments.items()}
    assert aligned == {"q": 8, "scale": 4, "workspace": 16, "x": 16}
