"""Known mistakes of compilers: found where they are, and nowhere else."""

import pytest

from kernelpack.errors import ToolchainError
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Cubin, Ptx
from kernelpack.toolchain import known_bad as table
from kernelpack.toolchain import ptxas
from kernelpack.toolchain.known_bad import known_bad, require_none, scan
from kernelpack.toolchain.locate import find
from tests.toolchain.tools import tools

# Instructions as ptxas 12.9.86 wrote them, in the order of memory.
LOST = bytes.fromhex("0f72070707000000 0001 8007 00e20f00")
KEPT = bytes.fromhex("0f72070704000000 0001 8007 00e20f00")
UNSIGNED = bytes.fromhex("0f72050007000000 0700 8003 00e40f00")
OTHER = bytes.fromhex("4872050707000000 0001 e007 00e20f00")
CUBIN = Cubin(image=b"", target="sm_100a", spill_store_bytes=0, spill_load_bytes=0)


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The instructions of the one kernel in a cubin; a test fills them in."""
    held: list[bytes] = []
    monkeypatch.setattr(table, "entries_of", lambda _: ("sample",))
    monkeypatch.setattr(table, "code_of", lambda _image, _entry: b"".join(held))
    return held


def test_every_entry_names_its_thread() -> None:
    """Nobody is refused without a place to read why."""
    assert [known.id for known in known_bad() if not known.thread.startswith("https://")] == []


def test_every_severity_is_one_of_two() -> None:
    """An entry refuses or warns."""
    assert {known.severity for known in known_bad()} <= {"refuse", "warn"}


@pytest.mark.parametrize(
    ("instruction", "found"),
    [
        (LOST, ["dropped-negation", "maybe-dropped-negation"]),
        (KEPT, ["maybe-dropped-negation"]),
        (UNSIGNED, []),
        (OTHER, []),
    ],
)
def test_a_lost_negation_is_told_from_its_twins(
    code: list[bytes], instruction: bytes, found: list[str]
) -> None:
    """A signed min or max of three may have lost a negation; with one register twice it has."""
    code.append(instruction)
    assert [finding.known.id for finding in scan(CUBIN, tools("12.9"))] == found


def test_a_finding_says_where(code: list[bytes]) -> None:
    """The offset of each instruction in the kernel's code."""
    code.extend([OTHER, LOST, OTHER, LOST])
    assert scan(CUBIN, tools("12.9"))[0].offsets == (16, 48)


@pytest.mark.parametrize(
    ("release", "target", "found"),
    [
        ("12.7", "sm_100a", 0),
        ("12.8", "sm_100a", 2),
        ("12.9", "sm_90a", 2),
        ("13.3", "sm_100f", 2),
        ("13.4", "sm_100a", 0),
        ("13.1", "sm_100a", 3),
        ("13.2", "sm_103a", 3),
    ],
)
def test_ranges_hold_both_ends(code: list[bytes], release: str, target: str, found: int) -> None:
    """A release is looked at from the first to the last that was reported."""
    code.append(LOST)
    cubin = Cubin(image=b"", target=target, spill_store_bytes=0, spill_load_bytes=0)
    assert len(scan(cubin, tools(release))) == found


def test_a_mistake_to_refuse_is_refused(code: list[bytes]) -> None:
    """The error names the variant, the place, the thread and the toolchain."""
    code.append(LOST)
    message = r"^sample: ptxas lost a negation.* at 0x0 \(https://.*190973\) \[cuda-12\.9\]\nhint: "
    with pytest.raises(ToolchainError, match=message):
        require_none(CUBIN, tools("12.9"), "sample")


def test_a_warning_is_not_a_refusal(code: list[bytes]) -> None:
    """What may be right is built."""
    code.append(KEPT)
    require_none(CUBIN, tools("12.9"), "sample")


LARGEST = """.version 8.8
.target {arch}
.address_size 64
.visible .entry sample(.param .u64 p)
{{
    .reg .b64 %rd<2>; .reg .b32 %r<6>;
    ld.param.u64 %rd1, [p];
    ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1 + 4];
    neg.s32 %r3, %r1; max.s32 %r4, %r1, %r3; max.s32 %r5, %r4, %r2;
    st.global.u32 [%rd1 + 8], %r5;
    ret;
}}
"""


@pytest.mark.toolchain
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_the_assembler_refuses_its_own_mistake(arch: str) -> None:
    """ptxas 12.9 really computes max(x, y) for max(|x|, y), and `assemble` finds it."""
    with pytest.raises(ToolchainError, match="ptxas lost a negation"):
        ptxas.assemble(Ptx(text=LARGEST.format(arch=arch)), find("cuda-12.9"), Arch(arch))


@pytest.mark.toolchain
def test_a_good_assembler_keeps_the_negation() -> None:
    """ptxas 13.4 makes another instruction of the same PTX: its registers differ."""
    ptx = Ptx(text=LARGEST.format(arch="sm_100a"))
    cubin = ptxas.assemble(ptx, find("cuda-13.4"), Arch("sm_100a"))
    assert [finding.known.id for finding in scan(cubin, tools("12.9"))] == [
        "maybe-dropped-negation"
    ]
