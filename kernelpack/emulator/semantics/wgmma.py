"""wgmma: matrices multiplied by a warpgroup, asynchronously (PTX ISA 9.7.15).

Each warp does its 16 rows by itself, but an instruction is over when every warp of the warpgroup
has issued and done its part: one warp may wait, and signal, for all four. The accumulators are
registers that are filled when it takes effect, at the latest when its group is waited for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from operator import is_

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.events import Acquire
from kernelpack.emulator.machine.engine import Operation
from kernelpack.emulator.machine.lanes import WIDTH, Lanes, Mask
from kernelpack.emulator.machine.memory import Bytes
from kernelpack.emulator.machine.warp import Landing, Split, Wait, Warp
from kernelpack.emulator.models import wgmma as model
from kernelpack.emulator.ptx.syntax import Vector
from kernelpack.emulator.semantics import copies, matrix_operands, warpgroup
from kernelpack.emulator.semantics.copies import Groups
from kernelpack.emulator.semantics.matrix import DTYPES
from kernelpack.emulator.semantics.matrix_operands import Region
from kernelpack.emulator.semantics.table import Form, Handler, control

_RECENT_KEPT = 8
"""wgmmas of a warp whose results are kept as numbers too."""
_SHAPES = tuple(f"m64n{n}k{k}" for n in range(8, 257, 8) for k in (8, 16, 32))


class _Wgmmas(Groups):
    """The groups of wgmmas."""


class _Fence(Enum):
    """A warp's last action: nothing yet, a `wgmma.fence`, or a wait since."""

    NONE = "none"
    FENCED = "fenced"
    WAITED = "waited"


@dataclass(slots=True)
class _Own:
    """State of a warp."""

    issued: list[Operation] = field(default_factory=list)
    """Every wgmma of its, in order."""
    landings: list[Callable[[], None]] = field(default_factory=list)
    """How those finish that it has not waited for."""
    waited: int = 0
    """How many of its warpgroup it has waited for."""
    fence: _Fence = _Fence.NONE
    recent: dict[int, "_Job"] = field(default_factory=dict)
    """id of a block of registers → the wgmma that filled it last."""


def _operands(form: Form) -> tuple[str, ...]:
    a = "{b32}" if isinstance(form.instruction.operands[1], Vector) else "b64"
    constants = ("#",) * (len(form.instruction.operands) - 4)
    return ("={b32}", a, "b64", "pred", *constants)


@control(
    "wgmma.mma_async.sync",
    "9.7.15.5.2",
    operands=_operands,
    types=tuple(DTYPES),
    flags=("aligned", "satfinite", *_SHAPES),
    converged=True,
    delayed=True,
    yields=True,
)
def multiply(form: Form) -> Handler:
    """Start D = A B + D, D = A B where scale-d is false."""
    d, a, b = (DTYPES[kind] for kind in form.types)
    n = int(form.one_of(_SHAPES).split("n")[1].split("k")[0])
    constants = [form.constant(k) for k in range(4, len(form.instruction.operands))]
    in_registers = isinstance(form.instruction.operands[1], Vector)
    scale_a, scale_b = (*constants[:2], 1, 1)[:2]
    majors = constants[2:]
    a_major = majors[0] if len(majors) == 2 else 0
    b_major = majors[-1] if majors else 0
    shape = model.WgmmaShape(
        n=n, a=a, b=b, d=d, negate_a=scale_a == -1, negate_b=scale_b == -1,
        saturate=form.has("satfinite"),
    )  # fmt: skip
    targets = form.instruction.operands[0]
    assert isinstance(targets, Vector)
    indices = [item.index for item in targets.items]  # type: ignore[union-attr]

    def call(
        warp: Warp, _split: Split, mask: Mask, first: "Lanes | list[Lanes]", second: Lanes,
        scale_d: Lanes,
    ) -> list[Lanes]:  # fmt: skip
        warpgroup.step(warp)
        _check_fence(warp)
        if in_registers and warp.inflight:
            warp.land(*first)
        lane = int(np.argmax(mask))
        return _Job(
            form,
            shape,
            warp,
            majors=(a_major, b_major),
            a=list(first) if in_registers else int(first[lane]),
            b=int(second[lane]),
            c=[warp.registers[index] for index in indices] if scale_d[lane] else None,
        ).start()

    return call


class _Job:
    """One wgmma of one warp, from its issue to its effect.

    A is in registers or behind a descriptor, as B is; C is absent if only the product is wanted.
    """

    def __init__(
        self,
        form: Form,
        shape: model.WgmmaShape,
        warp: Warp,
        *,
        majors: tuple[int, int],
        a: "list[Lanes] | int",
        b: int,
        c: "list[Lanes] | None",
    ) -> None:
        self.form, self.shape, self.warp = form, shape, warp
        self.a_major, self.b_major = majors
        self.a, self.b, self.c = a, b, c
        self.agent = warp.cta.agent(("wgmma", warp.index), f"wgmma of warp {warp.index}")
        count = len(form.instruction.operands[0].items)  # type: ignore[union-attr]
        self.filled = np.full((count, WIDTH), 0xFFFF_FFFF, np.uint32)
        self.out = list(self.filled)
        self.numbers: Lanes | None = None
        """The values of `filled`, as numbers, from its effect on."""

    def start(self) -> list[Lanes]:
        """Issue; the registers that will be filled."""
        warp, engine = self.warp, self.warp.cta.machine.engine
        number = engine.count + 1

        def effect() -> None:
            self.effect()
            copies.told_done(warp, self.agent, number)

        operation = engine.issue(
            self.form.instruction.text, warp, self.agent, effect, queue=("wgmma", warp.agent)
        )
        own = warp.units.of(_Own)
        own.issued.append(operation)
        warp.cta.machine.changes += 1
        copies.groups(warp, _Wgmmas).open.append(operation)

        def finish() -> None:
            engine.finish(operation)
            warp.cta.machine.bus.emit(Acquire(warp.agent, ("operation", number)))
            warp.inflight.pop(id(self.filled), None)

        warp.inflight[id(self.filled)] = Landing(finish, lambda: self._early(operation))
        own.landings.append(finish)
        return self.out

    def _early(self, operation: Operation) -> None:
        """An accumulator is touched before it was waited for."""
        is_open = operation in copies.groups(self.warp, _Wgmmas).open
        missing = "wgmma.commit_group" if is_open else "wgmma.wait_group"
        self.warp.cta.machine.misuse(
            rules.WGMMA_REGISTERS_IN_FLIGHT,
            f"the accumulator of the wgmma at {self.form.instruction.place} is used "
            f"before {missing}",
        )

    def effect(self) -> None:
        """Read the operands, multiply, fill the registers."""
        rows = self._shared_b()
        if isinstance(self.a, list):
            a = model.a_from_registers(self.shape, np.array(self.a))
        else:
            a = model.a_from_bytes(self.shape, self._shared_a(self.a))
        how = self.warp.cta.machine.multiply
        self.numbers = numbers = model.numbers(self.shape, a, rows, self._accumulator(), how)
        self.filled[:] = model.registers(self.shape, numbers)
        self._remember()

    def _accumulator(self) -> "Lanes | None":
        """The numbers in the registers of C: those of the wgmma that filled them, or decoded."""
        if self.c is None:
            return None
        recent = self.warp.units.of(_Own).recent
        last = recent.get(id(self.c[0].base))
        if last is not None and last.shape == self.shape and all(map(is_, last.out, self.c)):
            return last.numbers
        return model.accumulator(self.shape, np.array(self.c))

    def _remember(self) -> None:
        """Be the one that filled its registers, for a wgmma that adds to them."""
        recent = self.warp.units.of(_Own).recent
        recent[id(self.filled)] = self
        self.c = None
        if len(recent) > _RECENT_KEPT:
            del recent[next(iter(recent))]

    def _shared_a(self, raw: int) -> Bytes:
        """The warp's 16 rows of A."""
        first = 16 * (self.warp.index % 4)
        whole = self._region(raw, self.a_major, 64, self.shape.a.bits)
        return self._read(matrix_operands.part(whole, first, first + 16), "A")

    def _shared_b(self) -> Bytes:
        """All of B."""
        return self._read(self._region(self.b, self.b_major, self.shape.n, self.shape.b.bits), "B")

    def _region(self, raw: int, major: int, rows: int, bits: int) -> Region:
        _, found = matrix_operands.wgmma(raw)
        matrix_operands.tell(self.warp, found)
        return matrix_operands.region(
            "wgmma", raw, mn_major=bool(major), rows=rows, k=256 // bits, bits=bits
        )

    def _read(self, where: Region, name: str) -> Bytes:
        what = f"operand {name} of wgmma"
        return matrix_operands.read(self.warp.cta, where, self.agent, self.warp, what)


def _issued(warp: Warp, index: int) -> list[Operation]:
    """Every wgmma that warp `index` of the CTA has issued, in order."""
    return warp.cta.warps[index].units.of(_Own).issued


def _warpgroup(warp: Warp) -> range:
    """The warps of its warpgroup."""
    first = warp.index // 4 * 4
    return range(first, min(first + 4, len(warp.cta.warps)))


def _check_fence(warp: Warp) -> None:
    state = warp.units.of(_Own).fence
    if state is _Fence.NONE:
        warp.cta.machine.misuse(
            rules.WGMMA_FENCE,
            "the first wgmma of a warp has no wgmma.fence before it",
        )
    elif state is _Fence.WAITED:
        warp.cta.machine.misuse(
            rules.WGMMA_FENCE_AGAIN,
            "registers may have changed since the last wgmma.fence",
        )


@control("wgmma.fence.sync", "9.7.15.7.1", flags=("aligned",), converged=True)
def fence(_form: Form) -> Handler:
    """Order register accesses before the next wgmma."""

    def call(warp: Warp, _split: Split, _mask: Mask) -> None:
        warpgroup.step(warp)
        warp.units.of(_Own).fence = _Fence.FENCED

    return call


@control("wgmma.commit_group.sync", "9.7.15.7.2", flags=("aligned",), converged=True)
def commit(_form: Form) -> Handler:
    """Close the open group."""

    def call(warp: Warp, _split: Split, _mask: Mask) -> None:
        warpgroup.step(warp)
        copies.groups(warp, _Wgmmas).commit()

    return call


@control("wgmma.wait_group.sync", "9.7.15.7.3", operands=("#",), flags=("aligned",),
         converged=True, yields=True)  # fmt: skip
def wait_group(form: Form) -> Handler:
    """Wait until at most N groups are unfinished."""
    keep = form.constant(0)

    def call(warp: Warp, _split: Split, _mask: Mask) -> Wait | None:
        found, own = copies.groups(warp, _Wgmmas), warp.units.of(_Own)
        over = found.committed[: max(len(found.committed) - keep, 0)]
        begin = own.waited
        end = begin + sum(len(group) for group in over)
        if any(len(_issued(warp, index)) < end for index in _warpgroup(warp)):
            return Wait(
                "wgmma",
                lambda: all(len(_issued(warp, index)) >= end for index in _warpgroup(warp)),
                lambda: f"the other warps of its warpgroup to issue {end} wgmmas",
            )
        warpgroup.step(warp)
        _finish(warp, begin, end)
        del found.committed[: len(over)], found.lanes[: len(over)]
        if own.fence is _Fence.FENCED:
            own.fence = _Fence.WAITED
        return None

    return call


def _finish(warp: Warp, begin: int, end: int) -> None:
    """Those with numbers `begin` to `end` of the warpgroup are over, for every warp's rows."""
    engine, bus = warp.cta.machine.engine, warp.cta.machine.bus
    own = warp.units.of(_Own)
    for finish in own.landings[: end - begin]:
        finish()
    del own.landings[: end - begin]
    for index in _warpgroup(warp):
        for operation in _issued(warp, index)[begin:end]:
            engine.finish(operation)
            bus.emit(Acquire(warp.agent, ("operation", operation.number)))
    own.waited = end
