# ruff: noqa: E501  (a module of functions: one a line)
"""Functions that were not inlined: calls, recursion, pointers, and what the device library provides."""

import numpy as np
import pytest

from kernelpack.emulator import GlobalMemory, launch
from kernelpack.emulator.faults import AssertionFailed, Fault
from kernelpack.errors import UnsupportedError

HEAD = ".version 9.1\n.target sm_100a\n.address_size 64\n"
FUNCTIONS = """
.func (.param .b32 r) add3(.param .b32 add3_a, .param .b32 add3_b);
.extern .func (.param .b64 r) malloc (.param .b64 m);
.extern .func free (.param .b64 m);
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 v);
.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e) .noreturn;
.extern .func (.param .b32 r) unknown (.param .b32 x);
.global .align 8 .u64 table[2] = {triple, add_one};
.global .align 1 .b8 text[8] = {37, 100, 32, 37, 46, 50, 102, 10};
.global .align 1 .b8 name[6] = {105, 32, 60, 32, 52, 0};
.func (.param .b32 r) triple(.param .b32 x)
{ .reg .b32 %r<3>; ld.param.u32 %r1, [x]; mul.lo.s32 %r2, %r1, 3; st.param.b32 [r], %r2; ret; }
.func (.param .b32 r) add_one(.param .b32 x)
{ .reg .b32 %r<3>; ld.param.u32 %r1, [x]; add.s32 %r2, %r1, 1; st.param.b32 [r], %r2; ret; }
.func (.param .b32 r) add3(.param .b32 add3_a, .param .b32 add3_b)
{ .reg .b32 %r<3>; ld.param.u32 %r1, [add3_a]; ld.param.u32 %r2, [add3_b]; mad.lo.s32 %r1, %r2, 2, %r1; st.param.b32 [r], %r1; ret; }
.func (.param .b32 r) fib(.param .b32 x)
{ .reg .b32 %r<6>; .reg .pred %p1; ld.param.u32 %r1, [x]; mov.b32 %r5, %r1; setp.lt.s32 %p1, %r1, 2; @%p1 bra D;
  add.s32 %r2, %r1, -1;
  { .param .b32 q; .param .b32 s; st.param.b32 [q], %r2; call.uni (s), fib, (q); ld.param.b32 %r3, [s]; }
  add.s32 %r2, %r1, -2;
  { .param .b32 q; .param .b32 s; st.param.b32 [q], %r2; call.uni (s), fib, (q); ld.param.b32 %r4, [s]; }
  add.s32 %r5, %r3, %r4;
D: st.param.b32 [r], %r5; ret; }
.func (.param .b32 r) deep(.param .b32 x)
{ .reg .b32 %r<3>; { .param .b32 q; .param .b32 s; st.param.b32 [q], 0; call.uni (s), deep, (q); ld.param.b32 %r1, [s]; } st.param.b32 [r], %r1; ret; }
.func (.param .b32 r) holds(.param .b32 x)
{ .local .align 4 .b8 mem[16]; .reg .b32 %r<3>; { .param .b32 q; .param .b32 s; st.param.b32 [q], 0; call.uni (s), holds, (q); ld.param.b32 %r1, [s]; } st.param.b32 [r], %r1; ret; }
.func (.param .b32 r) early(.param .b32 x)
{ .reg .b32 %r<3>; .reg .pred %p1; ld.param.u32 %r1, [x]; st.param.b32 [r], 7; setp.lt.u32 %p1, %r1, 3; @%p1 ret; st.param.b32 [r], %r1; ret; }
"""


def module(body: str) -> str:
    """The functions, and an entry in whose body `%t` is the thread and `%r1` its word of `out`."""
    return f"""{HEAD}{FUNCTIONS}
.visible .entry k(.param .u64 out)
{{ .local .align 8 .b8 mem[16]; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b32 %t; .reg .b64 %a; .reg .f64 %d; .reg .pred %p<4>;
  ld.param.u64 %a, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %a, %t, 4, %a; mov.b32 %r1, %t; {body} st.global.b32 [%a], %r1; ret; }}"""


def called(name: str, argument: str = "%t", *, guard: str = "") -> str:
    """A call of a function of one argument, its result in %r1."""
    return f"{{ .param .b32 q; .param .b32 s; st.param.b32 [q], {argument}; {guard} call (s), {name}, (q); ld.param.b32 %r1, [s]; }}"


POINTER = "mov.u64 %rd1, table; and.b32 %r2, %t, 1; mad.wide.u32 %rd1, %r2, 8, %rd1; ld.global.u64 %rd2, [%rd1];"
INDIRECT = "{ .param .b32 q; .param .b32 s; st.param.b32 [q], %t; P: .callprototype (.param .b32 _) _ (.param .b32 _); call (s), %rd2, (q), P; ld.param.b32 %r1, [s]; }"
BODIES = [
    (called("triple"), [3 * t for t in range(32)]),
    ("{ .param .b32 p; .param .b32 q; .param .b32 s; st.param.b32 [p], %t; st.param.b32 [q], 4; call.uni (s), add3, (p, q); ld.param.b32 %r1, [s]; }", [t + 8 for t in range(32)]),
    (f"min.u32 %r3, %t, 9; {called('fib', '%r3')}", [0, 1, 1, 2, 3, 5, 8, 13, 21, *[34] * 23]),
    (f"setp.lt.u32 %p1, %t, 5; @%p1 bra S; {called('triple')} S:", [*range(5), *(3 * t for t in range(5, 32))]),
    (f"{POINTER} {INDIRECT}", [t + 1 if t % 2 else 3 * t for t in range(32)]),
    (f"mov.u64 %rd2, add_one; {INDIRECT}", [t + 1 for t in range(32)]),
    (called("early"), [7, 7, 7, *range(3, 32)]),
    (f"setp.lt.u32 %p1, %t, 9; @%p1 bra S; {called('triple')} bra E; S: {called('triple', '%t')} E: bar.sync 0;", [3 * t for t in range(32)]),
]  # fmt: skip


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize(("body", "expected"), BODIES)
def test_a_call(body: str, expected: list[int], schedule: str):
    """Each lane gets what the function returns to it, from wherever it was called."""
    out = np.zeros(32, np.uint32)
    result = launch(module(body), "k", 1, 32, out, schedule=schedule, level="strict")
    assert (result.findings, out.tolist()) == ((), expected)


HEAP = """{ .param .b64 q; .param .b64 s; st.param.b64 [q], 16; call.uni (s), malloc, (q); ld.param.b64 %rd1, [s]; }
  st.b32 [%rd1+§], %t; ld.b32 %r1, [%rd1+§];
  { .param .b64 q; st.param.b64 [q], %rd1; call.uni free, (q); }"""


def on_heap(body: str) -> tuple[set[str], list[int]]:
    """The rules that a body breaks in a memory with room for a heap, and the words it leaves."""
    memory = GlobalMemory(1 << 20)
    at = memory.put(np.zeros(32, np.uint32))
    result = launch(module(body), "k", 1, 32, at, memory=memory)
    found = {finding.rule.name for finding in result.findings}
    return found, memory.read(at, 128).view(np.uint32).tolist()


def test_memory_of_a_kernel_s_own():
    """`malloc` gives each lane its own; past its end is out of bounds, as after `free`."""
    assert on_heap(HEAP.replace("§", "12")) == (set(), list(range(32)))
    assert on_heap(HEAP.replace("§", "16"))[0] == {"bounds"}
    assert on_heap(f"{HEAP.replace('§', '12')} ld.b32 %r1, [%rd1];")[0] == {"bounds"}


@pytest.mark.parametrize(
    ("body", "error", "says"),
    [
        (called("deep"), Fault, "more than 512 calls within each other"),
        (called("holds"), UnsupportedError, "`holds` calls itself and has local memory"),
        (called("unknown"), UnsupportedError, "a call of `unknown`, which the module does not define"),
        (f"mov.u64 %rd2, 5; {INDIRECT}", Fault, "a call of 0x5, which is not a function"),
        ("{ .param .b64 q; st.param.b64 [q], 64; call.uni free, (q); }", Fault, "free of 0x40, where no allocation begins"),
    ],
)  # fmt: skip
def test_a_call_that_cannot_be(body: str, error: type[Exception], says: str):
    """It is refused by name, or ends the run."""
    with pytest.raises(error, match=says):
        launch(module(body), "k", 1, 32, np.zeros(32, np.uint32))


def test_printf():
    """Each lane fills its own line in, in order of lanes."""
    body = """mov.u64 %rd1, mem; cvta.local.u64 %rd1, %rd1; st.b32 [%rd1], %t; cvt.rn.f64.u32 %d, %t; st.f64 [%rd1+8], %d;
      mov.u64 %rd2, text; cvta.global.u64 %rd2, %rd2; setp.ge.u32 %p1, %t, 2; @%p1 bra E;
      { .param .b64 f; .param .b64 v; .param .b32 s; st.param.b64 [f], %rd2; st.param.b64 [v], %rd1; call.uni (s), vprintf, (f, v); ld.param.b32 %r1, [s]; } E:"""
    result = launch(module(body), "k", 1, 32, out := np.zeros(32, np.uint32))
    assert (result.printed, out[:3].tolist()) == (("0 0.00\n", "1 1.00\n"), [2, 2, 2])


def test_an_assertion_says_where_and_who():
    """File, line, function, block and thread, as CUDA does."""
    body = """mov.u64 %rd1, name; cvta.global.u64 %rd1, %rd1; setp.lt.u32 %p1, %t, 4; @%p1 bra E;
      { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 [a], %rd1; st.param.b64 [b], %rd1;
      st.param.b32 [c], 12; st.param.b64 [d], %rd1; st.param.b64 [e], 1; call.uni __assertfail, (a, b, c, d, e); } E:"""
    with pytest.raises(
        AssertionFailed,
        match=r":12: i < 4: block: \(0, 0, 0\), thread: \(4, 0, 0\) Ass.*`i < 4` failed",
    ):
        launch(module(body), "k", 1, 32, np.zeros(32, np.uint32))
