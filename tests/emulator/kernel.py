"""Small kernels for tests: a body, wrapped in an entry with registers and shared memory at hand.

Registers: %r0-31, %rd0-31, %f0-159, %p0-15, %q0-7 (b128), %thread, %lane, %warp, %rank (of the
CTA), %out and %in (global addresses), %mine (out + 4 * thread). Shared: `s` (64 KB, 1024-aligned),
`bar` (8 mbarriers), `slot` (a word).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelpack.emulator.faults import Level
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.run import Result, run
from kernelpack.emulator.watch import Watch
from kernelpack.spec.launch import Dim3, Plan, Pointer
from kernelpack.spec.tensormap import Element, TensorMap

OUT_WORDS = 4096


def text(body: str, *, target: str = "sm_100a", directives: str = "") -> str:
    """A module with one entry, `test`."""
    return f"""
.version 9.1
.target {target}
.address_size 64
.visible .entry test(.param .u64 p_out, .param .u64 p_in, .param .align 64 .b8 p_map[128])
{directives}
{{
  .reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .b32 %f<160>; .reg .pred %p<16>; .reg .b128 %q<8>;
  .reg .b32 %thread, %lane, %warp, %rank; .reg .b64 %out, %in, %mine, %map;
  .shared .align 1024 .b8 s[65536];
  .shared .align 8 .b64 bar[8];
  .shared .align 4 .b32 slot;
  ld.param.u64 %out, [p_out];
  ld.param.u64 %in, [p_in];
  mov.b64 %map, p_map;
  cvta.param.u64 %map, %map;
  mov.u32 %thread, %tid.x;
  and.b32 %lane, %thread, 31;
  shr.u32 %warp, %thread, 5;
  mov.u32 %rank, %cluster_ctarank;
  mad.wide.u32 %mine, %thread, 4, %out;
  {body}
  ret;
}}"""


@dataclass(frozen=True)
class Prepared:
    """A launch that has not begun: of which text, in which memory; where `out` lies in it."""

    text: str
    plan: Plan
    memory: GlobalMemory
    out: int


def prepared(
    body: str,
    *,
    threads: int = 32,
    grid: int = 1,
    cluster: int = 1,
    inputs: np.ndarray | None = None,
    tensor_map: TensorMap | None = None,
    target: str = "sm_100a",
    directives: str | None = None,
) -> Prepared:
    """A body with its arguments.

    It says how many threads and CTAs it is for, unless other directives are given.
    """
    bounds = f".maxntid {threads}, 1, 1 .minnctapersm 1" if directives is None else directives
    memory = GlobalMemory(1 << 20)
    out = memory.put(np.zeros(OUT_WORDS, np.uint32), "out")
    given = np.zeros(OUT_WORDS, np.uint32) if inputs is None else inputs
    source = memory.put(given, "in")
    map_argument = tensor_map(source, out) if callable(tensor_map) else _no_map(source)
    plan = Plan(
        entry="test",
        grid=Dim3(grid),
        block=Dim3(threads),
        cluster=Dim3(cluster),
        arguments=(Pointer(out), Pointer(source), map_argument),
    )
    return Prepared(text(body, target=target, directives=bounds), plan, memory, out)


def launch(
    body: str,
    *,
    schedule: str = "eager",
    seed: int = 0,
    level: Level = Level.WARN,
    step_limit: int = 200_000,
    watch: Watch | None = None,
    compiled: bool = True,
    **shape: Any,
) -> tuple[Result, np.ndarray]:
    """Run a body, `prepared` by its shape; the result and the words it left in `out`."""
    made = prepared(body, **shape)
    result = run(
        made.text, made.plan, made.memory,
        schedule=schedule, seed=seed, level=level, step_limit=step_limit, watch=watch,
        compiled=compiled,
    )  # fmt: skip
    return result, made.memory.read(made.out, 4 * OUT_WORDS).view(np.uint32)


def _no_map(address: int) -> TensorMap:
    return TensorMap(
        name="none", element=Element.U32, address=address, dims=(4,), strides_bytes=(),
        box=(4,), element_strides=(1,),
    )  # fmt: skip


def rules(result: Result) -> set[str]:
    """The names of the rules that were broken, and of the error that ended the run."""
    names = {finding.rule.name for finding in result.findings}
    if result.error is not None:
        names.add(type(result.error).__name__)
    return names
