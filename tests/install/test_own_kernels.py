"""`pip install` of a kernel of one's own: `verify NAME` and `run NAME` from an empty folder."""

import os
import subprocess
import sys
from pathlib import Path
from sysconfig import get_path

import pytest

from tests.install.test_wheel import BUILD, ROOT
from tests.kept import FOLDER

pytestmark = [pytest.mark.slow, pytest.mark.toolchain]


@pytest.fixture(scope="module")
def kernelpack(tmp_path_factory):
    """Run the command of an environment with kernelpack alone, or a wheel of a kernel besides."""
    home = tmp_path_factory.mktemp("own")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home / "venv"], check=True)
    (site,) = (home / "venv").glob("lib/python3.*/site-packages")
    (site / "borrowed.pth").write_text(get_path("purelib"))
    python = home / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-c", BUILD, home], cwd=ROOT, check=True, capture_output=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KERNELPACK")}
    environment["KERNELPACK_CACHE_DIR"] = str(FOLDER)

    def run(*words, cwd=home, ok=True):
        command = [python, "-I", "-m", "kernelpack", *map(str, words)]
        done = subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode == 0) == ok, done.stdout + done.stderr
        return done

    def install(*wheels):
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index"]
        subprocess.run([*pip, "--no-deps", *wheels], check=True, capture_output=True)

    install(*home.glob("*.whl"))
    run.install, run.home = install, home
    return run


@pytest.fixture(scope="module")
def installed(kernelpack):
    """A kernel made by an installed kernelpack, built, and installed as wheels."""
    kernelpack("new", "mine")
    kernelpack("build", "mine", "-k", "fp32", "-o", "mine.kpk")
    words = ("--kernels", "mine", "--project", "mine", "--version", "1.0", "-o", "dist")
    kernelpack("wheel", "mine.kpk", *words)
    kernelpack.install(*(kernelpack.home / "dist").glob("*.whl"))
    return kernelpack


@pytest.fixture
def empty(tmp_path):
    return Path(tmp_path)


def test_verify(installed, empty):
    """The installed bundles of the kernel are verified by the installed oracle."""
    done = installed("verify", "mine", "--schedule", "lazy", cwd=empty)
    records = sorted(path.name for path in empty.iterdir())
    assert records == ["mine_cubins_sm100.verified.json", "mine_cubins_sm90.verified.json"]
    assert "right in all of theirs" in done.stdout


def test_run(installed, empty):
    """A run needs nothing but the name."""
    assert "right" in installed("run", "mine", "n=7", "dtype=fp32", cwd=empty).stdout


def test_verify_another(installed, empty):
    """A kernel that no installed bundle holds is reported."""
    done = installed("verify", "lora_shrink_qkv", cwd=empty, ok=False)
    assert "kernel `lora_shrink_qkv`: no installed bundle holds it" in done.stderr


def test_headers_of_an_installed_kernelpack(kernelpack, empty):
    """A kernel's template includes kernelpack's own headers from where it is installed."""
    kernelpack("new", "fused", "--like", "silu_mul_fp8", cwd=empty)
    words = ("-k", "sm_90a and bf16 and threads=128", "-o", "fused.kpk")
    kernelpack("build", "fused", *words, cwd=empty)
    assert (empty / "fused.kpk").is_file()
