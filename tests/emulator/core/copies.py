"""Random programs of asynchronous copies, and of the mbarriers that they complete on."""

import random
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernelpack.errors import TensorMapError
from kernelpack.spec.tensormap import BITS, FLOATS, PADDED, Element, Fill, Swizzle, TensorMap, check
from tests.emulator.kernel import OUT_WORDS

SHARED_BYTES = 4 * OUT_WORDS
"""Of `s` that a program fills, and copies to `out` at its end."""
SCHEDULES = ("eager", "fair", "lazy", "starving:0:0")
_WORDS = SHARED_BYTES // 32 // 4
_WHOLE = {Element.U32, Element.I32, Element.U64, Element.I64}
_ROUNDED = {Element.FP32_FTZ, Element.TF32, Element.TF32_FTZ}

START = """
  mov.u32 %r0, bar; mov.u32 %r1, s; setp.eq.u32 %p0, %thread, 0; setp.lt.u32 %p9, %thread, 32;
  @%p0 mbarrier.init.shared.b64 [%r0], {count};
  @%p0 fence.mbarrier_init.release.cluster;
"""
FILL = f"""
  mad.lo.u32 %r2, %lane, 16, %r1; mov.u32 %r3, 0;
F: mad.lo.u32 %r4, %lane, 77, %r3; add.u32 %r5, %r4, 1000; xor.b32 %r6, %r5, %r4;
  @%p9 st.shared.v4.b32 [%r2], {{%r3, %r4, %r5, %r6}};
  add.u32 %r2, %r2, 512; add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, {_WORDS // 4}; @%p2 bra F;
  fence.proxy.async; bar.sync 0;
"""
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0; @!%p1 bra W;"
SHOW = f"""
  bar.sync 0; mad.lo.u32 %r2, %lane, 4, %r1; mad.wide.u32 %rd2, %lane, 4, %out; mov.u32 %r3, 0;
S: ld.shared.b32 %r4, [%r2]; @%p9 st.global.b32 [%rd2], %r4;
  add.u32 %r2, %r2, 128; add.u64 %rd2, %rd2, 128;
  add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, {_WORDS}; @%p2 bra S;
"""
BOTH = "barrier.cluster.arrive; barrier.cluster.wait;"
"""All threads of a cluster meet: a CTA may reach into another only behind it, and end behind it."""


@dataclass(frozen=True, slots=True)
class Random:
    """A program, and how it is launched (`tests.emulator.kernel.prepared`)."""

    body: str
    shape: dict[str, Any] = field(default_factory=dict)


def inputs(rng: random.Random) -> np.ndarray:
    """Words that are small as integers, or numbers as floats."""
    return np.random.default_rng(rng.randrange(1 << 30)).integers(0, 1 << 20, OUT_WORDS, np.uint32)


# -- boxes of tensors --------------------------------------------------------------------------


def tensor_map(rng: random.Random, *, is_store: bool, by_rows: bool) -> TensorMap:
    """A map that the TMA unit takes, of a tensor inside 16 KiB, with a box that fits as many."""
    while True:
        found = _any_map(rng, by_rows=by_rows)
        held = found.dims[-1] * (found.strides_bytes[-1] if found.rank > 1 else SHARED_BYTES // 9)
        rows = int(np.prod(found.box[1:]))
        fits = held <= SHARED_BYTES and 2 * rows * max(found.inner_bytes, 128) <= SHARED_BYTES
        if not fits or found.element in _ROUNDED or (is_store and found.element in PADDED):
            continue
        try:
            check(found)
        except TensorMapError:
            continue
        return found


def _any_map(rng: random.Random, *, by_rows: bool) -> TensorMap:
    element, rank = rng.choice(list(Element)), 2 if by_rows else rng.randint(1, 5)
    outer = [1] if by_rows else [rng.randint(1, 9) for _ in range(rank - 1)]
    inner = 128 // BITS[element] * rng.choice((1, 2, 4, 8))
    dims = [max(2, inner + rng.randint(-3, 20)), *(rng.randint(1, 9) for _ in outer)]
    if element in PADDED:
        inner = dims[0] = 128
    row = -(-dims[0] * BITS[element] // 256) * 32
    return TensorMap(
        name="random",
        element=element,
        address=0,
        dims=tuple(dims),
        strides_bytes=tuple(row * int(np.prod(dims[1:n])) for n in range(1, rank)),
        box=(inner, *outer),
        element_strides=(1, *(rng.choice((1, 1, 2, 3)) for _ in outer)),
        swizzle=rng.choice(list(Swizzle)),
        fill=rng.choice(list(Fill)) if element in FLOATS else Fill.ZERO,
    )


def _coordinates(rng: random.Random, m: TensorMap, low: int, *, by_rows: bool) -> str:
    """Where a box begins; of four rows a column and their numbers."""
    step = 64 if m.element is Element.U6_ALIGN16 else 128 // BITS[m.element]
    first = step * rng.randint(low, 2)
    sides = (m.dims[1] + 1,) * 4 if by_rows else m.dims[1:]
    return ", ".join(map(str, (first, *(rng.randint(low, side - 1) for side in sides))))


def _bytes(m: TensorMap, *, by_rows: bool) -> int:
    steps = zip(m.box[1:], m.element_strides[1:], strict=True)
    return m.inner_bytes * (4 if by_rows else int(np.prod([-(-b // s) for b, s in steps])))


def loaded_box(rng: random.Random) -> Random:
    """A box from a tensor; a part of it may be outside."""
    by_rows = rng.random() < 0.3
    m = tensor_map(rng, is_store=False, by_rows=by_rows)
    form = f"{m.rank}d.shared::cluster.global" + ".tile::gather4" * by_rows
    at = _coordinates(rng, m, -1, by_rows=by_rows)
    body = f"""{START.format(count=1)} {FILL}
      @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r0], {_bytes(m, by_rows=by_rows)};
      @%p0 cp.async.bulk.tensor.{form}.mbarrier::complete_tx::bytes
          [%r1+{1024 * rng.randint(0, 4)}], [%map, {{{at}}}], [%r0];
      {WAIT} {SHOW}"""
    source = {"tensor_map": lambda source, _out: replace(m, address=source)}
    return Random(body, {**source, "inputs": inputs(rng)})


def stored_box(rng: random.Random) -> Random:
    """A box to a tensor, from every lane that runs it, stored or added."""
    by_rows = rng.random() < 0.3
    m = tensor_map(rng, is_store=True, by_rows=by_rows)
    reduces = not by_rows and rng.random() < 0.5 and m.element in _WHOLE
    form = f"{m.rank}d.global.shared::cta" + f".{rng.choice(('add', 'min', 'xor'))}" * reduces
    at = _coordinates(rng, m, 0, by_rows=by_rows)
    body = f"""{START.format(count=1)} {FILL} setp.lt.u32 %p3, %thread, {rng.choice((1, 1, 3))};
      @%p3 cp{".reduce" * reduces}.async.bulk.tensor.{form}{".tile::scatter4" * by_rows}.bulk_group
          [%map, {{{at}}}], [%r1+{1024 * rng.randint(0, 4)}];
      @%p3 cp.async.bulk.commit_group;
      @%p3 cp.async.bulk.wait_group{rng.choice(("", ".read"))} 0;"""
    return Random(body, {"tensor_map": lambda _source, out: replace(m, address=out)})


# -- ranges of bytes ---------------------------------------------------------------------------


def copied_range(rng: random.Random) -> Random:
    """Bytes to shared memory, some more between, and back."""
    size = 16 * rng.randint(1, 40)
    to, source = 16 * rng.randint(0, 200), 16 * rng.randint(0, 200)
    others = 16 * rng.randint(0, 200)
    last, how = rng.choice((("async", ""), ("reduce.async", ".add.u32")))
    body = f"""{START.format(count=1)} {FILL}
      add.u64 %rd3, %in, {source}; add.u64 %rd4, %out, {source};
      @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r0], {size};
      @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
          [%r1+{to}], [%rd3], {size}, [%r0];
      {WAIT}
      @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd4], [%r1+{others}], {size};
      @%p0 cp.async.bulk.commit_group;
      @%p0 cp.{last}.bulk.global.shared::cta.bulk_group{how} [%rd4+6400], [%r1+{to}], {size};
      @%p0 cp.async.bulk.commit_group;
      @%p0 cp.async.bulk.wait_group {rng.randint(0, 1)}; @%p0 cp.async.bulk.wait_group 0;"""
    return Random(body, {"inputs": inputs(rng)})


def copied_by_lanes(rng: random.Random) -> Random:
    """`cp.async` of some lanes, in groups or with an arrival on an mbarrier."""
    size, lanes = rng.choice((4, 8, 16)), rng.randint(1, 32)
    part = rng.random() < 0.5
    arrives = rng.choice(("", ".noinc", None))
    count = lanes if arrives == ".noinc" else 32
    copy = f"""@%p3 cp.async.ca.shared.global [%r2], [%rd3], {size}{", %r7" * part};"""
    done = {
        None: f"cp.async.commit_group; {copy} cp.async.commit_group; "
        f"cp.async.wait_group {rng.randint(0, 1)}; cp.async.wait_all;",
        "": "cp.async.mbarrier.arrive.shared.b64 [%r0]; mbarrier.arrive.shared.b64 _, [%r0];"
        + WAIT,
        ".noinc": "@%p3 cp.async.mbarrier.arrive.noinc.shared.b64 [%r0];" + WAIT,
    }[arrives]
    body = f"""{START.format(count=count)} {FILL} setp.lt.u32 %p3, %lane, {lanes};
      mul.lo.u32 %r7, %lane, {rng.choice((1, 2, 4))}; min.u32 %r7, %r7, {size};
      xor.b32 %r8, %lane, {rng.randint(0, 31)}; mad.lo.u32 %r2, %r8, {size}, %r1;
      mad.wide.u32 %rd3, %lane, {size * rng.randint(0, 3)}, %in;
      {copy} {done} {SHOW}"""
    return Random(body, {"inputs": inputs(rng)})


def stored_to_peer(rng: random.Random) -> Random:
    """`st.async` or `red.async` of lanes to the other CTA of a cluster, which waits for them."""
    length, lanes = rng.choice((1, 2, 4)), rng.randint(1, 32)
    reduces = length == 1 and rng.random() < 0.5
    form = "red.async.relaxed.cluster" if reduces else "st.async.weak"
    how = (
        f".{rng.choice(('add', 'max', 'or'))}.u32"
        if reduces
        else f"{f'.v{length}' * (length > 1)}.b32"
    )
    values = "{%r10, %lane, %r1, %r10}"[: {1: 5, 2: 12, 4: 30}[length]].rstrip("}") + "}"
    body = f"""{START.format(count=1)} {FILL} {BOTH} setp.lt.u32 %p3, %lane, {lanes};
      xor.b32 %r9, %rank, 1; mapa.shared::cluster.u32 %r8, %r1, %r9;
      mapa.shared::cluster.u32 %r7, %r0, %r9; mad.lo.u32 %r10, %lane, 1000, %rank;
      mad.lo.u32 %r8, %lane, {4 * length}, %r8;
      @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r0], {4 * length * lanes};
      @%p3 {form}.shared::cluster.mbarrier::complete_tx::bytes{how}
          [%r8+{4 * length * rng.randint(0, 9)}], {values if length > 1 else "%r10"}, [%r7];
      {WAIT} {BOTH} setp.eq.u32 %p4, %rank, 0; @!%p4 bra E; {SHOW} E:"""
    return Random(body, {"cluster": 2, "grid": 2})


# -- mbarriers ---------------------------------------------------------------------------------


def counted_phases(rng: random.Random) -> Random:
    """Warps that arrive in many ways, for a few phases, and wait in between."""
    ways = {
        "mbarrier.arrive.shared.b64 _, [%r0];": 32,
        "mbarrier.arrive.shared.b64 %rd5, [%r0], 2;": 64,
        "@%p4 mbarrier.arrive.shared.b64 _, [%r0];": 1,
        "@%p4 mbarrier.arrive.shared.b64 _, [%r0], 5;": 5,
        "@%p4 mbarrier.expect_tx.shared.b64 [%r0], 64; "
        "@%p4 mbarrier.complete_tx.shared.b64 [%r0], 64; "
        "@%p4 mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 0;": 1,
        "@%p4 mbarrier.arrive.release.cluster.shared.b64 _, [%r0];": 1,
    }
    wait = rng.choice(("try_wait", "test_wait"))
    warps, chosen = rng.randint(1, 4), rng.choices(list(ways), k=2)
    count = warps * sum(ways[way] for way in chosen)
    turn = f"""{" ".join(chosen)}
      W{{n}}: mbarrier.{wait}.parity.shared.b64 %p1, [%r0], {{parity}}; @!%p1 bra W{{n}};
      add.u32 %r11, %r11, 1;"""
    turns = " ".join(turn.format(n=n, parity=n & 1) for n in range(rng.randint(1, 4)))
    body = f"""{START.format(count=count)} bar.sync 0; setp.eq.u32 %p4, %lane, {rng.randint(0, 31)};
      mov.u32 %r11, 0; {turns} st.global.b32 [%mine], %r11;
      bar.sync 0; @%p0 mbarrier.inval.shared.b64 [%r0];"""
    return Random(body, {"threads": 32 * warps})


PROGRAMS = (
    loaded_box, stored_box, copied_range, copied_by_lanes, stored_to_peer, counted_phases,
)  # fmt: skip
