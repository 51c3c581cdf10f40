"""`kernelpack check`."""

import json

import pytest

from kernelpack.cli import settings


def test_findings(kernelpack, bundle):
    """Machine code that is no ELF is found; findings are the output, the verdict is talk."""
    said = kernelpack("check", bundle)
    assert said.code == 1
    assert said.out.startswith(f"{bundle}: lora_shrink_qkv[")
    assert said.err == f"{bundle}: 2 entries, not sound\n"


def test_json(kernelpack, bundle):
    """`--json` has a finding's parts."""
    said = kernelpack("check", bundle, "--json")
    told = json.loads(said.out)
    assert (said.code, told["entries"], len(told["findings"])) == (1, 2, 2)
    assert {"where", "what", "hint", "is_error"} == set(told["findings"][0])


def test_missing(kernelpack, tmp_path):
    """A file that is not there is a finding too."""
    said = kernelpack("check", tmp_path / "no.kpk")
    assert said.code == 1
    assert said.out.startswith(f"{tmp_path}/no.kpk: cannot be read")
    assert said.err == f"{tmp_path}/no.kpk: refused\n"


@pytest.mark.parametrize("percent", ["0", "101%", "x", "-5", "%"])
def test_no_percent(kernelpack, bundle, percent):
    """A part of the entries is above 0 and at most 100%."""
    said = kernelpack("check", bundle, "--rebuild", percent)
    assert (said.code, f"`{percent}` is not a percentage" in said.err) == (2, True)


def test_rebuild_after_what_is_sound(kernelpack, bundle):
    """Nothing is rebuilt of a bundle that is not sound by itself."""
    said = kernelpack("check", bundle, "--rebuild", "5%")
    assert (said.code, said.err) == (1, f"{bundle}: 2 entries, not sound\n")


@pytest.fixture
def real(kernelpack, tmp_path):
    """A bundle of one real entry."""
    path = tmp_path / "q.kpk"
    manifest = settings.sources() / "manifests" / "nvfp4_quantize.yaml"
    words = ("-k", "sm_90a and bf16 and plain")
    assert kernelpack("build", manifest, "-o", path, *words).code == 0
    return path


@pytest.mark.toolchain
def test_rebuild(kernelpack, real):
    """A real entry made again, by real compilers, is the same to the last bit."""
    said = kernelpack("check", real, "--rebuild", "100%")
    verdict = "1 entry, sound; 1 rebuilt, none other than the bundle's"
    assert (said.code, said.out, said.err) == (0, "", f"{real}: {verdict}\n")


@pytest.mark.toolchain
def test_rebuild_of_other_sources(kernelpack, real, tmp_path):
    """A bundle whose sources are not here is not called unsound: it was not rebuilt."""
    said = kernelpack("check", real, "--rebuild", "5%", "--templates", tmp_path)
    assert (said.code, said.err) == (1, f"{real}: 1 entry, sound; not rebuilt\n")
    assert "hint: give its manifests with --manifest" in said.out
