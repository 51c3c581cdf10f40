"""What is read from a cubin, and what is refused."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpack.errors import ToolchainError
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Cubin, Ptx
from kernelpack.spec.params import Slot
from kernelpack.toolchain.elf import branches_of, code_of, entries_of, inspect, target_of
from kernelpack.toolchain.locate import find
from kernelpack.toolchain.ptxas import assemble
from tests.toolchain.conftest import Make

EVERY = [
    (toolchain, arch) for toolchain in ("cuda-13.4", "cuda-12.9") for arch in ("sm_90a", "sm_100a")
]
every_cubin = pytest.mark.parametrize(("toolchain", "arch"), EVERY)

OFFSETS = {
    "sm_90a": (48, 176, 184, 192, 196, 200),
    "sm_100a": (0, 128, 136, 144, 148, 152),
}
"""A tensor map is aligned as an address, and sm_90a's parameters begin at 0x210."""


@pytest.mark.toolchain
@every_cubin
def test_offsets_and_sizes_of_parameters(make_sample: Make, toolchain: str, arch: str) -> None:
    """Every parameter of the signature, in order, where the machine code reads it."""
    _, cubin = make_sample(toolchain, "nvrtc", arch)
    sizes = (128, 8, 8, 2, 4, 8)
    expected = tuple(Slot(*pair) for pair in zip(OFFSETS[arch], sizes, strict=True))
    assert inspect(cubin, "sample").slots == expected


@pytest.mark.toolchain
@every_cubin
def test_static_shared_memory_is_the_kernels_own(
    make_sample: Make, toolchain: str, arch: str
) -> None:
    """The kibibyte that the system keeps in every block is not counted."""
    _, cubin = make_sample(toolchain, "nvrtc", arch)
    expected = {"sm_90a": 8192 + 8, "sm_100a": 8192 + 8 + 4}
    assert inspect(cubin, "sample").shared_bytes == expected[arch]


@pytest.mark.toolchain
@every_cubin
def test_the_target_is_in_the_file(make_sample: Make, toolchain: str, arch: str) -> None:
    """Machine code says what it is for, whatever the value around it says."""
    _, cubin = make_sample(toolchain, "nvrtc", arch)
    assert target_of(cubin.image) == arch


@pytest.mark.toolchain
@every_cubin
def test_a_kernel_that_uses_little_says_so(make_sample: Make, toolchain: str, arch: str) -> None:
    """The sample needs no stack, spills nothing, and has 8 to 32 registers a thread."""
    _, cubin = make_sample(toolchain, "nvrtc", arch)
    found = inspect(cubin, "sample")
    assert (found.stack_bytes, found.spill_bytes, 8 <= found.registers <= 32) == (0, 0, True)


STACK = """.version 8.8
.target {arch}
.address_size 64
.visible .entry sample(.param .u64 p, .param .u32 i)
.maxnreg {registers}
{{
    .local .align 16 .b8 a[256];
    .reg .b64 %rd<5>; .reg .b32 %r<3>;
    ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [i];
    mov.u64 %rd2, a; cvt.u64.u32 %rd3, %r1; add.u64 %rd4, %rd2, %rd3;
    st.local.u32 [%rd4], %r1; st.local.u32 [%rd4 + 64], %r1; ld.local.u32 %r2, [%rd2 + 16];
    st.global.u32 [%rd1], %r2;
    ret;
}}
"""


@pytest.mark.toolchain
@every_cubin
def test_a_stack_is_counted(toolchain: str, arch: str) -> None:
    """An array that is indexed at run time lies on the stack."""
    ptx = Ptx(text=STACK.format(arch=arch, registers=32))
    cubin = assemble(ptx, find(toolchain), Arch(arch))
    assert inspect(cubin, "sample").stack_bytes == 256


@pytest.mark.toolchain
def test_another_target_than_asked_for_is_refused(make_sample: Make) -> None:
    """A cubin that was renamed to another target is found out."""
    _, cubin = make_sample("cuda-13.4", "nvrtc", "sm_100a")
    with pytest.raises(ToolchainError, match="machine code of sm_100a, not sm_100f"):
        inspect(replace(cubin, target="sm_100f"), "sample")


@pytest.mark.toolchain
def test_a_missing_entry_is_named(make_sample: Make) -> None:
    """The error says which entries there are."""
    _, cubin = make_sample("cuda-13.4", "nvrtc", "sm_100a")
    with pytest.raises(ToolchainError, match="no entry `simple`\nhint: it has: sample"):
        inspect(cubin, "simple")


@pytest.mark.toolchain
@pytest.mark.parametrize("change", [lambda image: image[:-200], lambda image: image + b"\0" * 8])
def test_an_image_of_another_length_is_refused(make_sample: Make, change) -> None:
    """A cubin that is cut, or has bytes after its end, is not what the assembler wrote."""
    _, cubin = make_sample("cuda-13.4", "nvrtc", "sm_100a")
    with pytest.raises(ToolchainError, match=r"ends at byte \d+, its file at|not a cubin"):
        inspect(replace(cubin, image=change(cubin.image)), "sample")


@pytest.mark.toolchain
def test_entries_are_listed(make_sample: Make) -> None:
    """A cubin of ours holds one kernel."""
    _, cubin = make_sample("cuda-13.4", "nvrtc", "sm_100a")
    assert entries_of(cubin.image) == ("sample",)


@pytest.mark.toolchain
def test_code_is_whole_instructions(make_sample: Make) -> None:
    """An instruction is 16 bytes."""
    _, cubin = make_sample("cuda-13.4", "nvrtc", "sm_90a")
    assert len(code_of(cubin.image, "sample")) % 16 == 0


@pytest.mark.parametrize(
    "image", [b"", b"version https://git-lfs.github.com/spec/v1\n", b"\x7fELF"]
)
def test_what_is_no_elf_file_is_refused(image: bytes) -> None:
    """A pointer file, an empty file and a beginning are not cubins."""
    with pytest.raises(ToolchainError, match="not a cubin"):
        target_of(image)


def test_an_elf_file_for_another_machine_is_refused() -> None:
    """The error names the machine: this interpreter is not a cubin."""
    program = Path(shutil.which(sys.executable) or "").resolve()
    with pytest.raises(ToolchainError, match="not a cubin: an ELF file for EM_"):
        target_of(program.read_bytes())


@pytest.mark.toolchain
@given(data=st.data())
def test_a_damaged_cubin_gives_a_named_error_or_a_value(
    make_sample: Make, data: st.DataObject
) -> None:
    """No damage makes the reader fail in another way than by refusing."""
    _, cubin = make_sample("cuda-13.4", "nvrtc", "sm_100a")
    image = bytearray(cubin.image)
    for _ in range(data.draw(st.integers(1, 8))):
        image[data.draw(st.integers(0, len(image) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(image)))
    assert refused_or_read(replace(cubin, image=bytes(image[:end])))


def refused_or_read(cubin: Cubin) -> bool:
    try:
        branches_of(cubin.image, "sample")
        return bool(inspect(cubin, "sample"))
    except ToolchainError:
        return True
