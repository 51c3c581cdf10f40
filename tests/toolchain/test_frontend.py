"""Front ends and releases against each other, on a sample with each target's own instructions."""

import re
from pathlib import Path

import pytest

from kernelpack.spec.arch import Arch
from kernelpack.toolchain.elf import code_of, inspect
from kernelpack.toolchain.locate import find
from kernelpack.toolchain.ptxas import assemble
from tests.toolchain.conftest import Compile, Make
from tests.toolchain.samples import sample

pytestmark = pytest.mark.toolchain

WAYS = [("cuda-13.4", "nvrtc"), ("cuda-13.4", "nvcc"), ("cuda-12.9", "nvrtc")]
ARCHES = ["sm_90a", "sm_100a"]
INSTRUCTIONS = {
    "sm_90a": ["wgmma.mma_async", "cp.async.bulk.tensor.2d"],
    "sm_100a": ["tcgen05.mma", "tcgen05.alloc", "cp.async.bulk.tensor.2d"],
}

every_way = pytest.mark.parametrize(("toolchain", "front_end"), WAYS)
every_arch = pytest.mark.parametrize("arch", ARCHES)


@every_way
@every_arch
def test_the_targets_own_instructions_compile(
    make_sample: Make, toolchain: str, front_end: str, arch: str
) -> None:
    """Each way to PTX knows the target's tensor cores and tensor copies."""
    ptx, _ = make_sample(toolchain, front_end, arch)
    assert [word for word in INSTRUCTIONS[arch] if word not in ptx.text] == []


@every_way
@every_arch
def test_ptx_holds_no_folder_of_this_machine(
    make_sample: Make, toolchain: str, front_end: str, arch: str
) -> None:
    """Files are names: of templates, of headers under `include/`, of the toolkit's."""
    ptx, _ = make_sample(toolchain, front_end, arch)
    files = re.findall(r"\.file\s+\d+ (.*)", ptx.text)
    known = r'"(sample/(kernel\.cu|part)\.j2|include/sample/shared\.cuh|toolkit/[\w./]+)"'
    assert [file for file in files if not re.fullmatch(known, file)] == []


@every_arch
def test_both_front_ends_give_the_same_machine_code(make_sample: Make, arch: str) -> None:
    """The fast front end is checked against the reference, byte by byte."""
    (_, fast), (_, reference) = (make_sample("cuda-13.4", way, arch) for way in ("nvrtc", "nvcc"))
    assert code_of(fast.image, "sample") == code_of(reference.image, "sample")


@every_arch
def test_both_front_ends_lay_out_parameters_alike(make_sample: Make, arch: str) -> None:
    """Where a parameter lies does not depend on who compiled the kernel."""
    (_, fast), (_, reference) = (make_sample("cuda-13.4", way, arch) for way in ("nvrtc", "nvcc"))
    assert inspect(fast, "sample").slots == inspect(reference, "sample").slots


@every_way
@every_arch
def test_two_folders_give_the_same_bytes(
    make_sample: Make,
    compile_in_worker: Compile,
    tmp_path: Path,
    toolchain: str,
    front_end: str,
    arch: str,
) -> None:
    """Where a build runs is neither in the PTX nor, so, in the cubin."""
    here, _ = make_sample(toolchain, front_end, arch)
    there = compile_in_worker(toolchain, front_end, arch, sample(arch), folder=tmp_path)
    assert there.text == here.text


@every_arch
@pytest.mark.parametrize("toolchain", ["cuda-13.4", "cuda-12.9"])
def test_assembling_twice_gives_the_same_bytes(
    make_sample: Make, toolchain: str, arch: str
) -> None:
    """A cubin is decided by its PTX and its assembler."""
    ptx, cubin = make_sample(toolchain, "nvrtc", arch)
    assert assemble(ptx, find(toolchain), Arch(arch)) == cubin
