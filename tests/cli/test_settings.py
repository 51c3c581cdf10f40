"""What the environment and the installation say."""

from pathlib import Path

import pytest

from kernelpack.cli import settings

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KERNELPACK_CACHE_DIR", "cache_dir"),
        ("KERNELPACK_BUNDLE", "bundle"),
        ("CUDA_HOME", "cuda_home"),
        ("CUDA_HOME", "toolkit"),
    ],
)
def test_variable(monkeypatch, variable, name):
    """Each variable is a path."""
    monkeypatch.setenv(variable, "/some/where")
    assert getattr(settings.read(), name) == Path("/some/where")


def test_a_url(monkeypatch):
    """The remote cache is a URL, no path."""
    monkeypatch.setenv("KERNELPACK_REMOTE_CACHE", "s3://bucket//folder")
    assert settings.read().remote_cache == "s3://bucket//folder"


@pytest.mark.parametrize("value", [None, ""])
def test_variable_that_is_not_set(monkeypatch, value):
    """An empty variable counts as none."""
    monkeypatch.setattr("os.environ", {} if value is None else {"KERNELPACK_BUNDLE": value})
    assert settings.read().bundle is None


def test_nvcc_on_path(monkeypatch, tmp_path):
    """Without CUDA_HOME the toolkit is that of nvcc on PATH, wherever a link to it lies."""
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text("")
    nvcc.chmod(0o755)
    (tmp_path / "cuda" / "include").mkdir()
    (tmp_path / "cuda" / "include" / "cuda_runtime_api.h").write_text("")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "nvcc").symlink_to(nvcc)
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    found = settings.read()
    assert (found.cuda_home, found.toolkit) == (None, tmp_path / "cuda")


@pytest.mark.parametrize(("folder", "found"), [("cuda", True), ("elsewhere", False)])
def test_a_script_named_nvcc(monkeypatch, tmp_path, folder, found):
    """An nvcc with no headers beside it is a script around another one, and says of which."""
    header = tmp_path / "cuda" / "include" / "cuda_runtime_api.h"
    header.parent.mkdir(parents=True)
    header.write_text("")
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.parent.mkdir()
    nvcc.write_text(f"#!/bin/sh\necho '#$ TOP={tmp_path}/{folder}/bin/..' >&2\n")
    nvcc.chmod(0o755)
    (tmp_path / folder / "bin").mkdir(parents=True)
    monkeypatch.setenv("PATH", str(nvcc.parent))
    assert settings.read().toolkit == (tmp_path / "cuda" if found else None)


@pytest.mark.parametrize("text", ["", "#!/bin/sh\nexit 1\n"])
def test_a_program_that_is_no_nvcc(monkeypatch, tmp_path, text):
    """What does not run, or says nothing, has no toolkit."""
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(text)
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert settings.read().toolkit is None


def test_no_nvcc(monkeypatch, tmp_path):
    """With neither there is no toolkit."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert settings.read().toolkit is None


def test_sources_of_a_checkout():
    """A checkout's own manifests and templates are those that come with kernelpack."""
    assert settings.sources() == ROOT
    assert ROOT / "manifests" / "lora_shrink_qkv.yaml" in settings.manifests()


def test_sources_of_a_wheel(monkeypatch, tmp_path):
    """An installed package has them under data/."""
    monkeypatch.setattr("kernelpack.__file__", str(tmp_path / "kernelpack" / "__init__.py"))
    assert settings.sources() == tmp_path / "kernelpack" / "data"
