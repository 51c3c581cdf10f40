"""A key changes with each thing its output depends on, and with nothing else."""

from dataclasses import replace

import pytest

from kernelpack.build import key as key_module
from kernelpack.build.key import cubin_key, ptx_key, variant_key
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Header, Ptx, Source
from tests.fakes import compilers

SOURCE = Source(
    variant_id="fill[arch=sm_90a]",
    entry="fill",
    name="fill/kernel.cu.j2",
    text="void fill() {}",
    headers=(Header(path="kp/all.cuh", text="// all"),),
)
PTX = Ptx(text=".entry fill")
ARCH = Arch("sm_90a")


@pytest.fixture(autouse=True)
def _host(monkeypatch):
    """A host compiler of one version."""
    monkeypatch.setattr(key_module, "host_version", lambda: "g++ 12.2.0")


@pytest.fixture
def toolchain(tmp_path):
    return compilers.toolchain(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"text": "void fill() { }"},
        {"entry": "other"},
        {"name": "fill/other.cu.j2"},
        {"headers": ()},
        {"headers": (Header(path="kp/all.cuh", text="// other"),)},
        {"headers": (Header(path="kp/other.cuh", text="// all"),)},
    ],
    ids="".join,
)
def test_source_changes_the_ptx(toolchain, change):
    """Text, entry, template and headers are parts of a PTX's key."""
    other = ptx_key(replace(SOURCE, **change), toolchain, ARCH)
    assert other.digest != ptx_key(SOURCE, toolchain, ARCH).digest


@pytest.mark.parametrize("change", [{"digest": "9" * 64}, {"front_end": "nvcc"}], ids=str)
def test_front_end_changes_the_ptx(toolchain, change):
    """The front end and its bytes are parts of a PTX's key."""
    other = ptx_key(SOURCE, replace(toolchain, **change), ARCH)
    assert other.digest != ptx_key(SOURCE, toolchain, ARCH).digest


def test_the_host_compiler_changes_what_nvcc_makes(toolchain, monkeypatch):
    """nvcc's PTX depends on the g++ beside it, NVRTC's does not."""
    front_ends = [toolchain, replace(toolchain, front_end="nvcc")]
    before = [ptx_key(SOURCE, each, ARCH).digest for each in front_ends]
    monkeypatch.setattr(key_module, "host_version", lambda: "g++ 13.1.0")
    after = [ptx_key(SOURCE, each, ARCH).digest for each in front_ends]
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False]


def test_assembler_leaves_the_ptx(toolchain):
    """The assembler is not part of a PTX's key, but of its cubin's."""
    other = replace(toolchain, ptxas_digest="9" * 64)
    assert ptx_key(SOURCE, other, ARCH) == ptx_key(SOURCE, toolchain, ARCH)
    assert cubin_key(PTX, other, ARCH).digest != cubin_key(PTX, toolchain, ARCH).digest


@pytest.mark.parametrize("key", [ptx_key, variant_key])
def test_target_changes_all(toolchain, key):
    """Each target has its own PTX."""
    assert key(SOURCE, toolchain, Arch("sm_100a")).digest != key(SOURCE, toolchain, ARCH).digest


def test_paths_take_no_part(toolchain, tmp_path):
    """Where the compilers lie decides nothing."""
    moved = replace(toolchain, ptxas=tmp_path / "elsewhere", include_dirs=(tmp_path,))
    assert variant_key(SOURCE, moved, ARCH) == variant_key(SOURCE, toolchain, ARCH)


def test_variant_key_has_the_parts_of_both(toolchain):
    """What a variant depends on is what its PTX and its assembly depend on."""
    parts = dict(variant_key(SOURCE, toolchain, ARCH).parts)
    assert dict(ptx_key(SOURCE, toolchain, ARCH).parts).items() < parts.items()
    assert parts["assembler"] == f"CUDA 13.4 {'2' * 64}"
