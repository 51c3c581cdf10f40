"""The assembler: what it says, and what of it is a refusal."""

import pytest

from kernelpack.errors import CompileError, ToolchainError
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Cubin, Ptx
from kernelpack.toolchain import ptxas
from kernelpack.toolchain.locate import find
from tests.fakes.runner import FakeRunner
from tests.toolchain.tools import TOOLS

PTX = Ptx(
    text=""".visible .entry sample(
)
{
\t.loc\t1 12 5
\tbogus.u32 %r1;
}
\t.file\t1 "sample/kernel.cu.j2"
"""
)

QUIET = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'sample' for 'sm_90a'
ptxas info    : Function properties for sample
    {stack} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads
ptxas info    : Used 30 registers, used 1 barriers, 128 bytes smem
ptxas info    : Compile time = 3.588 ms
"""
FINE = QUIET.format(stack=0, stores=0, loads=0)


def assemble(monkeypatch: pytest.MonkeyPatch, **answer: object) -> Cubin:
    runner = FakeRunner(writes={"kernel.cubin": b"code"}, **answer)  # type: ignore[arg-type]
    monkeypatch.setattr(ptxas, "run", runner)
    return ptxas.assemble(PTX, TOOLS, Arch("sm_90a"))


def test_the_command_is_the_same_for_every_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """ptxas stores its flags in the cubin, so names are fixed and `-v` is always there."""
    runner = FakeRunner(writes={"kernel.cubin": b"code"}, stderr=FINE)
    monkeypatch.setattr(ptxas, "run", runner)
    ptxas.assemble(PTX, TOOLS, Arch("sm_90a"))
    words = "-v -lineinfo -suppress-debug-info -arch sm_90a -o kernel.cubin kernel.ptx"
    assert runner.calls[0].command == ("/site/cu13/bin/ptxas", *words.split())


def test_the_image_is_what_it_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cubin holds ptxas's bytes and the target that was asked for."""
    assert assemble(monkeypatch, stderr=FINE) == Cubin(
        image=b"code", target="sm_90a", spill_store_bytes=0, spill_load_bytes=0
    )


def test_spills_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spills are not in the ELF file: they are what `-v` says, over all functions."""
    log = QUIET.format(stack=8, stores=12, loads=16) + QUIET.format(stack=0, stores=1, loads=2)
    cubin = assemble(monkeypatch, stderr=log)
    assert (cubin.spill_store_bytes, cubin.spill_load_bytes) == (13, 18)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "ptxas kernel.ptx, line 5; error   : Not a name of any known instruction: 'bogus'",
            r"^sample/kernel\.cu\.j2:12: Not a name of any known instruction: 'bogus'",
        ),
        (
            "ptxas kernel.ptx, line 5; fatal   : Parsing error near ';': syntax error",
            r"^sample/kernel\.cu\.j2:12: Parsing error",
        ),
        (
            "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable",
            r"^sample: \(C7508\) Potential Performance Loss: 'setmaxnreg' ignored",
        ),
        (
            "ptxas info    : (C7517) wgmma.wait_group is injected in around line 5 by compiler",
            r"^sample/kernel\.cu\.j2:12: \(C7517\) wgmma\.wait_group is injected",
        ),
        (
            "ptxas warning : Option suppress-debug-info requires option lineinfo",
            "^sample: Option suppress-debug-info",
        ),
    ],
)
def test_what_nobody_may_miss_is_a_refusal(
    monkeypatch: pytest.MonkeyPatch, line: str, message: str
) -> None:
    """Errors, warnings and lost performance stop the build, at the template's line if known."""
    with pytest.raises(CompileError, match=message):
        assemble(monkeypatch, stderr=f"{line}\n{FINE}")


def test_a_failure_without_a_message_shows_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be placed is shown as it is, with the kernel."""
    with pytest.raises(CompileError, match=r"^sample: ptxas does not say why"):
        assemble(monkeypatch, returncode=1)


def test_a_killed_assembler_is_no_fault_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal is an error of the toolchain, so the build may try again alone."""
    with pytest.raises(
        ToolchainError, match=r"^sample: ptxas was killed by SIGKILL\nhint: .*memory"
    ):
        assemble(monkeypatch, returncode=-9)


SERIAL = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry sample(.param .u64 p)
{
    .reg .b64 %rd<3>; .reg .f32 %f<5>;
    ld.param.u64 %rd1, [p];
    ld.global.u64 %rd2, [%rd1];
    mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, %rd2, %rd2, 1,1,1,0,0;
    add.f32 %f1, %f1, %f1;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    st.global.f32 [%rd1], %f1;
    ret;
}
"""


@pytest.mark.toolchain
@pytest.mark.parametrize("name", ["cuda-13.4", "cuda-12.9"])
def test_a_read_before_the_wait_is_found_by_ptxas(name: str) -> None:
    """ptxas waits in the kernel's place where wgmma's result is read too early; that is refused."""
    with pytest.raises(CompileError, match=r"\(C7517\)"):
        ptxas.assemble(Ptx(text=SERIAL), find(name), Arch("sm_90a"))


REGISTERS = """.version 8.8
.target {arch}
.address_size 64
.visible .entry sample(.param .u64 p)
.maxntid 512
{bounds}
{{
    .reg .b64 %rd<2>; .reg .b32 %r<2>; .reg .pred %p<2>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 128;
    @%p1 bra DEC;
    setmaxnreg.inc.sync.aligned.u32 152;
    bra END;
DEC:
    setmaxnreg.dec.sync.aligned.u32 24;
END:
    st.global.u32 [%rd1], %r1;
    ret;
}}
"""
"""`__launch_bounds__(512)` is .maxntid; a second number, the blocks of an SM, is .minnctapersm."""


@pytest.mark.toolchain
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", ["cuda-13.4", "cuda-12.9"])
def test_dropped_setmaxnreg_is_refused(name: str, arch: str) -> None:
    """ptxas drops setmaxnreg where the bounds name no blocks, and says so in a line of info."""
    ptx = Ptx(text=REGISTERS.format(arch=arch, bounds=""))
    message = (
        r"^sample: \(C7508\) .*'setmaxnreg' ignored.*\nhint: give the kernel both launch bounds"
    )
    with pytest.raises(CompileError, match=message):
        ptxas.assemble(ptx, find(name), Arch(arch))


@pytest.mark.toolchain
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", ["cuda-13.4", "cuda-12.9"])
def test_kept_setmaxnreg_is_not(name: str, arch: str) -> None:
    """With both bounds it is kept, and nothing is printed."""
    ptx = Ptx(text=REGISTERS.format(arch=arch, bounds=".minnctapersm 1"))
    assert ptxas.assemble(ptx, find(name), Arch(arch)).image


SCALED = """\
.version 9.0
.target sm_100f
.address_size 64
.visible .entry sample() {{
    .reg .b32 t, i;
    .reg .b64 d;
    .reg .pred p;
    mov.b32 t, 0;
    mov.b32 i, 0;
    mov.b64 d, 0;
    setp.eq.u32 p, i, 0;
    tcgen05.mma.cta_group::1.kind::{kind}.block_scale{scale} [t], d, d, i, [t], [t], p;
    ret;
}}
"""


@pytest.mark.toolchain
@pytest.mark.parametrize(
    ("kind", "scale", "hint", "right"),
    [
        ("mxf4nvf4", ".scale_vec::4X", "`.block16` says the same", ".block16"),
        ("mxf4", ".scale_vec::2X", "`.block32` says the same", ".block32"),
        ("mxf8f6f4", ".scale_vec::1X", "leave it out", ""),
    ],
)
def test_scales_of_a_family(kind: str, scale: str, hint: str, right: str) -> None:
    """A family takes other words for the size of scaled blocks; the error says which."""
    toolchain, arch = find("cuda-13.4"), Arch("sm_100f")
    with pytest.raises(CompileError, match=r"scale_vec::\dX' not supported") as caught:
        ptxas.assemble(Ptx(text=SCALED.format(kind=kind, scale=scale)), toolchain, arch)
    assert hint in caught.value.hint
    assert ptxas.assemble(Ptx(text=SCALED.format(kind=kind, scale=right)), toolchain, arch).image
