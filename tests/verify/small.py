"""A kernel of three lines, its meaning and its bundle: y[i] = 2 * x[i], 32 elements a block."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kernelpack.bundle.entry import Entry
from kernelpack.bundle.writer import write, write_ptx
from kernelpack.formats.dtype import DType
from kernelpack.kernels.definition import Definition, Expected
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Ptx, Resources, digest
from kernelpack.spec.expr import constant, parse
from kernelpack.spec.params import Access, Argument, PointerParam, ScalarParam
from kernelpack.spec.variant import Budget, Guard, LaunchSpec, Size, Variant
from kernelpack.verify.plan import Scope
from kernelpack.verify.verify import Options, verify
from kernelpack.workers.pool import run_here
from tests.fakes.bundles import provenance
from tests.verify.watching import Watching

DOUBLE = "add.f32 %f1, %f1, %f1;"


def ptx(body: str = DOUBLE, *, entry: str = "twice_32", guard: str = "setp.ge.u32 %p1, %r1, %r2;"):
    """The kernel; `body` turns x in %f1 into y, `guard` says which threads leave."""
    return Ptx(
        text=f"""
.version 9.1
.target sm_100a
.address_size 64
.visible .entry {entry}(.param .u64 p_y, .param .u64 p_x, .param .u32 p_n)
{{
  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .b32 %f<4>; .reg .pred %p<4>;
  .shared .align 8 .b64 bar;
  ld.param.u64 %rd1, [p_y];
  ld.param.u64 %rd2, [p_x];
  ld.param.u32 %r2, [p_n];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r1, %r3, 32, %r4;
  {guard}
  @%p1 ret;
  mad.wide.u32 %rd3, %r1, 4, %rd2;
  ld.global.f32 %f1, [%rd3];
  {body}
  mad.wide.u32 %rd4, %r1, 4, %rd1;
  st.global.f32 [%rd4], %f1;
  ret;
}}"""
    )


def variant(tile: int = 32, *, cost: str = "n", when: str = "n <= 1000") -> Variant:
    """The variant of a tile, which is part of its name and of nothing else."""
    side = (parse("n"),)
    return Variant(
        kernel="twice",
        abi=1,
        arch=Arch("sm_100a"),
        axes=(("TILE", tile),),
        constants=(("TILE", tile),),
        template="twice.cu.j2",
        sizes=(Size(name="n", doc="elements"),),
        arguments=(
            Argument(name="y", dtype=DType.FP32, shape=side, access=Access.WRITE),
            Argument(name="x", dtype=DType.FP32, shape=side),
        ),
        params=(
            PointerParam(name="y", argument="y"),
            PointerParam(name="x", argument="x"),
            ScalarParam(name="n", dtype=DType.U32, value=parse("n")),
        ),
        launch=LaunchSpec(
            grid=(parse("cdiv(n, 32)"), constant(1), constant(1)),
            block=(constant(32), constant(1), constant(1)),
        ),
        guards=(Guard(when=parse(when), reason="n is too large"),),
        cost=parse(cost),
        budget=Budget(registers=168, shared_bytes=232_448),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """So many elements."""

    name: str
    n: int

    @property
    def sizes(self):
        return {"n": self.n}


def case_of(n):
    return Case(name=f"n_{n}", n=n)


CASES = tuple(map(case_of, (5, 40, 64, 500, 2000)))


def inputs(case):
    return {"x": np.random.default_rng(case.n).standard_normal(case.n).astype(np.float32)}


def expected(_case, arrays):
    value = 2 * arrays["x"].astype(np.float64)
    return {"y": Expected(value=value, bound=np.abs(value) * 2.0**-20)}


DEFINITION = Definition(
    stem="twice",
    abis=range(1, 2),
    cases=lambda: CASES,
    small=lambda: CASES[:3],
    telling=lambda: CASES[:2],
    case=lambda sizes: case_of(int(sizes.get("n", 64))),
    emulated={"n": "5"},
    inputs=inputs,
    expected=expected,
)


def entry(made: Variant, text: Ptx) -> Entry:
    """A bundle's entry whose machine code is a few bytes."""
    resources = Resources(
        entry=made.entry,
        target=made.arch.name,
        registers=16,
        shared_bytes=0,
        stack_bytes=0,
        spill_bytes=0,
        slots=made.slots,
    )
    return Entry(
        variant=made,
        resources=resources,
        image=f"cubin of {made.id}".encode(),
        target=made.arch.name,
        ptx_digest=text.digest,
        source_digest=digest(made.id),
    )


def bundle(path: Path, texts: dict[int, Ptx] | None = None) -> Path:
    """Two variants, of tiles 32 and 64 (never selected), and their PTX."""
    texts = texts or {tile: ptx(entry=f"twice_{tile}") for tile in (32, 64)}
    return written(path, [(variant(t, cost=f"n + {t}"), text) for t, text in texts.items()])


def of_two_targets(path: Path, body: str = DOUBLE) -> Path:
    """A variant for sm_100a, and one for sm_103a, whose y is made of x by `body`."""
    b300 = ptx(body).text.replace("sm_100a", "sm_103a")
    made = variant()
    return written(path, [(made, ptx()), (replace(made, arch=Arch("sm_103a")), Ptx(text=b300))])


def written(path: Path, made: list[tuple[Variant, Ptx]]) -> Path:
    """A bundle of variants, and their PTX beside it."""
    write([entry(one, text) for one, text in made], path, provenance("13.4"))
    write_ptx([text for _, text in made], path.with_suffix(".ptx.kpk"), provenance("13.4"))
    return path


def changed(launch: dict[str, tuple], made: Variant | None = None) -> Variant:
    """A variant whose launch is not what its kernel needs."""
    made = made or variant()
    return replace(made, launch=replace(made.launch, **launch))


def verified(tmp_path: Path, body: str = DOUBLE, **changes):
    """The report of two variants, the second with this body, under one schedule if not changed."""
    texts = {32: ptx(entry="twice_32"), 64: ptx(body, entry="twice_64")}
    options = Options(
        bundle=bundle(tmp_path / "x.kpk", texts),
        cache_dir=tmp_path / "cache",
        scope=Scope(schedule="eager"),
    )
    return verify(replace(options, **changes), Watching(), run_here)
