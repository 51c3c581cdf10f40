"""setmaxnreg: registers move between the warps of a CTA (PTX ISA 9.7.19.5).

Released registers go to the CTA's pool, which is empty at the start; a warp waits until
the pool has the registers that it asks for. Counts are of one thread: the 32 of a warp have as
many each.
"""

from dataclasses import dataclass, field

from kernelpack.emulator import rules
from kernelpack.emulator.faults import Rule
from kernelpack.emulator.machine.cluster import Cta
from kernelpack.emulator.machine.lanes import Mask
from kernelpack.emulator.machine.warp import Split, Wait, Warp
from kernelpack.emulator.semantics.table import Form, Handler, control

SECTION = "9.7.19.5"


@dataclass(slots=True)
class _Own:
    """State of a warp: how many it has, where it asked, and which of these it ran, in order.

    The warps of a warpgroup must have run the same ones when the CTA ends.
    """

    count: int | None = None
    ran: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Pool:
    """State of a CTA: how many a thread can still get."""

    left: int = 0


@control("setmaxnreg.inc setmaxnreg.dec", SECTION, operands=("#",), types=("u32",),
         flags=("sync", "aligned"), converged=True, yields=True)  # fmt: skip
def set_registers(form: Form) -> Handler:
    """Give registers back, or take some from the pool."""
    count, more = form.constant(0), form.instruction.modifiers[0] == "inc"
    if not 24 <= count <= 256 or count % 8:
        raise form.unsupported(f"{count} registers; setmaxnreg takes 24 to 256 in steps of 8")

    def call(warp: Warp, split: Split, _mask: Mask) -> Wait | None:
        own = _count(warp)
        if own is None:
            _no_effect(warp)
            return None
        if split.token is None:
            _check_direction(warp, own, count, more=more)
            _note(warp, f"{form.instruction.modifiers[0]} {count}")
        needed = count - own
        if needed > 0 and _pool(warp.cta).left < needed:
            split.token = needed
            return Wait(
                "registers",
                lambda: _pool(warp.cta).left >= needed,
                lambda: _describe(warp.cta, count, needed),
            )
        split.token = None
        _pool(warp.cta).left -= needed
        warp.units.of(_Own).count = count
        warp.cta.machine.changes += 1
        return None

    return call


_WARPGROUP = 4


def _note(warp: Warp, what: str) -> None:
    """Remember an instruction; at the CTA's end the warps of a warpgroup must have run the same."""
    cta = warp.cta
    if not any(other.units.of(_Own).ran for other in cta.warps):
        cta.on_end.append(lambda: _differing(cta))
    warp.units.of(_Own).ran.append(what)


def _differing(cta: Cta) -> list[tuple[Rule, str]]:
    """The warpgroups whose warps ran different ones."""
    found = []
    for first in range(0, len(cta.warps), _WARPGROUP):
        group = cta.warps[first : first + _WARPGROUP]
        ran = [", ".join(warp.units.of(_Own).ran) or "none" for warp in group]
        if len(set(ran)) > 1:
            told = "; ".join(f"warp {w.index}: {what}" for w, what in zip(group, ran, strict=True))
            text = f"warps of one warpgroup ran different setmaxnreg instructions: {told}"
            found.append((rules.SETMAXNREG_WARPGROUP, text))
    return found


def _pool(cta: Cta) -> _Pool:
    return cta.units.of(_Pool)


def _count(warp: Warp) -> int | None:
    """How many a thread of a warp has; None where nothing says how many it started with."""
    asked = warp.units.of(_Own).count
    return warp.cta.launched.shape.registers if asked is None else asked


def _check_direction(warp: Warp, own: int, count: int, *, more: bool) -> None:
    """It is undefined to ask for more and get less, or the other way round."""
    if (count < own) if more else (count > own):
        name = "inc" if more else "dec"
        warp.cta.machine.misuse(
            rules.SETMAXNREG_DIRECTION,
            f"setmaxnreg.{name} to {count} of a warp that has {own}",
        )


def _no_effect(warp: Warp) -> None:
    warp.cta.machine.misuse(
        rules.SETMAXNREG_IGNORED,
        "setmaxnreg does nothing: no directive says how many registers a thread starts with; "
        "__launch_bounds__(threads, 1) does, by .minnctapersm",
    )


def _describe(cta: Cta, count: int, needed: int) -> str:
    """The missing count, and each warp's."""
    start = cta.launched.shape.registers
    owned = ", ".join(str(_count(warp)) for warp in cta.warps)
    return (
        f"setmaxnreg.inc to {count} needs {needed} registers a thread more, the CTA's pool has "
        f"{_pool(cta).left}; its warps started with {start} and now have {owned}"
    )
