# ruff: noqa: E501  (bodies of kernels)
"""Launches: arguments, shapes, findings."""

import numpy as np
import pytest

from kernelpack.emulator.faults import Fault, Level
from kernelpack.emulator.machine import tensor_map
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.prepare import place_variables
from kernelpack.emulator.ptx.parser import parse
from kernelpack.emulator.run import run
from kernelpack.formats.dtype import DType
from kernelpack.spec.launch import Dim3, Plan, Pointer, Scalar
from kernelpack.spec.tensormap import Element, Fill, Swizzle, TensorMap
from tests.emulator.kernel import launch as run_body
from tests.emulator.kernel import rules, text
from tests.emulator.mutation.gemm import GEMM, multiply

MAP = TensorMap(
    name="m",
    element=Element.BF16,
    address=0x7000_0000_1000,
    dims=(64, 2**32, 3),
    strides_bytes=(128, 2**39),
    box=(64, 256, 1),
    element_strides=(1, 2, 1),
    swizzle=Swizzle.B128,
    fill=Fill.NAN,
)


def test_a_result_shown():
    """A prompt shows what is wrong a line each, and of a right run a sum."""
    right, wrong = run_body(""), run_body("st.shared.b32 [s+65536000], %thread; trap;")
    assert repr(right[0]).endswith("warp instructions, 0 findings>")
    assert len(repr(wrong[0]).splitlines()) == 1 + len(wrong[0].findings) + 1


def test_a_tensor_map_survives_its_bytes():
    """128 bytes hold every field but the name."""
    raw = tensor_map.encode(MAP)
    back = tensor_map.decode(raw)
    assert (128, MAP.dims, MAP.strides_bytes, MAP.fill) == (
        len(raw), back.dims, back.strides_bytes, back.fill,
    )  # fmt: skip


def plan(**changes: object) -> Plan:
    """A launch of the test kernel, changed."""
    values: dict[str, object] = {
        "entry": "test",
        "grid": Dim3(1),
        "block": Dim3(32),
        "arguments": (Pointer(0x7000_0000_1000), Pointer(0), MAP),
    }
    return Plan(**{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"arguments": (Pointer(0), Pointer(0))}, "2 arguments for 3 parameters"),
        ({"arguments": (Pointer(0), Scalar(DType.I32, 1), MAP)}, "argument of 4 bytes"),
        ({"arguments": (Pointer(0), MAP, Pointer(0))}, "argument of 128 bytes"),
        ({"block": Dim3(2048)}, "2048 threads"),
        ({"shared_bytes": 300_000}, "300000 bytes of shared memory"),
        ({"shared_bytes": 232_448}, "232448 bytes of shared memory, and 65616 of the kernel's own"),
        ({"shared_bytes": -1}, "-1 bytes of shared memory"),
        ({"grid": Dim3(0)}, r"a grid of \(0, 1, 1\)"),
        ({"grid": Dim3(1, 65_536)}, "at most 2147483647, 65535 and 65535"),
        ({"grid": Dim3(2**31 - 1)}, "more than 100000000 warp instructions"),
        ({"block": Dim3(-32)}, r"a block of \(-32, 1, 1\)"),
        ({"block": Dim3(1, 1, 65)}, "at most 1024, 1024 and 64"),
        ({"grid": Dim3(2), "cluster": Dim3(0)}, r"a cluster of \(0, 1, 1\)"),
        ({"grid": Dim3(32), "cluster": Dim3(4, 8)}, "a cluster of 32 blocks"),
        ({"grid": Dim3(3), "cluster": Dim3(2)}, "whole clusters"),
    ],
)
def test_wrong_launches_are_refused(changes: dict[str, object], what: str):
    """What a driver would refuse is a fault that says why."""
    with pytest.raises(Fault, match=what):
        run(text(""), plan(**changes), GlobalMemory(1 << 16)).raise_on_error()


@pytest.mark.parametrize(("bytes_", "block"), [(524_304, 32), (524_288, 1024)])
def test_local_memory_is_bounded(bytes_: int, block: int):
    """A thread has 512 KiB at most, and the emulator a limit for all of a cluster."""
    with pytest.raises(Fault, match="bytes of local memory"):
        run(text(f".local .b8 x[{bytes_}];"), plan(block=Dim3(block)), GlobalMemory(1 << 16))


@pytest.mark.parametrize(
    ("directive", "block", "cluster", "what"),
    [
        (".maxntid 32", 64, 1, r"`.maxntid` is 32"),
        (".reqntid 64", 32, 1, r"`.reqntid` is 64"),
        (".reqnctapercluster 2, 1, 1", 32, 4, "requires"),
        (".reqnctapercluster 0, 0, 0", 32, 1, r"a cluster of \(0, 0, 0\)"),
    ],
)
def test_what_the_entry_requires_is_kept(directive: str, block: int, cluster: int, what: str):
    """Performance directives bind the launch."""
    module = text("").replace("p_map[128])", f"p_map[128]) {directive}")
    launched = plan(block=Dim3(block), cluster=Dim3(cluster), grid=Dim3(4))
    with pytest.raises(Fault, match=what):
        run(module, launched, GlobalMemory(1 << 16))


def test_a_finding_says_who_where_and_which_rule():
    """CTA, warp, lane, line, rule and section are in one line."""
    result, _ = run_body("setp.eq.u32 %p1, %lane, 5; @%p1 st.global.b32 [%mine+16384], 1;")
    (finding,) = result.findings
    assert (finding.cta, finding.warp, finding.rule.name) == ((0, 0, 0), 0, "bounds")
    assert str(finding).startswith("cta (0, 0, 0) warp 0")
    assert "PTX ISA 8.2" in str(finding)
    assert "`out` of 16384 bytes" in finding.message


def test_the_same_finding_is_counted():
    """A loop that breaks a rule again and again is one finding."""
    body = "mov.u32 %r1, 0; L: st.global.b32 [%mine+65536], 1; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra L;"
    assert [finding.count for finding in run_body(body)[0].findings] == [9]


def test_levels_choose_what_is_reported():
    """A strict rule is silent by default."""
    body = "mov.u32 %r1, s; mad.lo.u32 %r2, %thread, 4, %r1; st.shared.b32 [%r2], 1; xor.b32 %r2, %r2, 4; ld.shared.b32 %r3, [%r2];"
    assert set() == rules(run_body(body)[0])
    assert {"warp-sync"} == rules(run_body(body, level=Level.STRICT)[0])


def test_module_variables_are_initialised():
    """Constants and addresses stored in variables are there when the kernel starts."""
    module = text(
        "mov.u64 %rd1, where; ld.global.b64 %rd2, [%rd1]; ld.b32 %r1, [%rd2+4]; st.global.b32 [%mine], %r1;"
    ).replace(
        ".visible", ".const .align 4 .b32 table[2] = {7, 9};\n.global .u64 where = table;\n.visible"
    )
    memory = GlobalMemory(1 << 16)
    out = memory.put(np.zeros(32, np.uint32))
    result = run(module, plan(arguments=(Pointer(out), Pointer(out), MAP)), memory)
    assert (result.error, memory.read(out, 128).view(np.uint32).tolist()) == (None, [9] * 32)


def test_a_packed_parameter_block_replaces_the_arguments():
    """A host program packs its own; the kernel reads what it finds there."""
    memory = GlobalMemory(1 << 16)
    out = memory.put(np.zeros(32, np.uint32))
    block = out.to_bytes(8, "little").ljust(192, b"\0")
    result = run(text("st.global.b32 [%mine], 5;"), plan(arguments=()), memory, parameters=block)
    assert (result.error, memory.read(out, 128).view(np.uint32).tolist()) == (None, [5] * 32)


def test_a_parameter_block_has_the_size_the_entry_declares():
    """A short one is refused."""
    with pytest.raises(Fault, match="8 bytes of parameters; the kernel takes 192"):
        run(text(""), plan(arguments=()), GlobalMemory(1 << 16), parameters=bytes(8))


def test_variables_keep_their_values_between_launches():
    """Variables placed once are the same memory in every launch that gets their addresses."""
    module = parse(
        text("atom.global.add.u32 %r1, [count], 1;").replace(
            ".visible", ".extern .global .u32 other;\n.global .u32 count = 3;\n.visible"
        )
    )
    memory = GlobalMemory(1 << 16)
    addresses = place_variables(module, memory)
    run(module, plan(), memory, addresses=addresses)
    run(module, plan(), memory, addresses=addresses)
    assert set(addresses) == {"count"}
    assert memory.read(addresses["count"], 4).view(np.uint32) == 3 + 2 * 32


def test_exact_arithmetic_keeps_exact_sums():
    """Small integers come out the same with the tensor cores' own rounding."""
    _, right = multiply(GEMM, "eager", exact=True)
    assert right


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("mov.u64 %rd1, 0; st.global.b32 [%rd1], 1;", "4 bytes to global at 0x0: no allocation"),
        ("mov.u64 %rd1, -1; st.global.b8 [%rd1], 1;", "a byte to global at 0xffffffffffffffff: no"),
        ("mov.u32 %r1, 4096; st.local.b32 [%r1], 1;", "4 bytes to local at offset 0x1000 of 16"),
        ("mov.u32 %r1, slot; ld.shared.b32 %r2, [%r1];", "0 bytes into `slot` of 4 bytes"),
        ("mov.u32 %r1, slot; st.shared.b32 [%r1+20], 1;", "16 bytes past the end of `slot` of 4 b"),
        ("st.global.b32 [%out+16384], 1;", "0 bytes past the end of `out` of 16384 bytes"),
        ("st.global.b32 [%out+-8], 1;", "8 bytes before `out` of 16384 bytes"),
    ],
)
def test_wild_addresses_are_told_as_they_are(body: str, says: str):
    """An address below the memory's own, and one outside a thread's local memory."""
    (finding,) = run_body(body)[0].findings
    assert says in finding.message
