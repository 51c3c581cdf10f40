"""mbarrier.test_wait and try_wait (PTX ISA 9.7.13.15.16)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.events import Acquire, Scope
from kernelpack.emulator.machine.cluster import Cta
from kernelpack.emulator.machine.engine import Tempo
from kernelpack.emulator.machine.lanes import Lanes, Mask, constant
from kernelpack.emulator.machine.polls import asked
from kernelpack.emulator.machine.warp import Answer, Split, Wait, Warp
from kernelpack.emulator.models import mbarrier as model
from kernelpack.emulator.semantics import mbarrier
from kernelpack.emulator.semantics.mbarrier import FLAGS
from kernelpack.emulator.semantics.table import Form, Handler, control


def _wait_operands(form: Form) -> tuple[str, ...]:
    return ("=pred", "@shared", "u32" if form.has("parity") else "b64", "u32?")


@control("mbarrier.test_wait mbarrier.try_wait", "9.7.13.15.16", operands=_wait_operands,
         types=("b64",), flags=(*FLAGS, "parity"), yields=True)  # fmt: skip
def wait(form: Form) -> Handler:
    """P = whether a phase is complete.

    `try_wait` suspends the lanes until it is; it answers "no" only when nothing else in the grid
    can go on.
    """
    parity = form.has("parity")
    suspends = form.instruction.modifiers[0] == "try_wait"
    relaxed, scope = form.has("relaxed"), mbarrier.scope_of(form)

    def passed(cta: Cta, offset: int, value: int) -> bool:
        state: model.State = cta.mbarriers[offset]
        return model.parity_passed(state, value) if parity else model.token_passed(state, value)

    def call(
        warp: Warp, split: Split, mask: Mask, at: Lanes, phase: Lanes, *_hint: Lanes
    ) -> Wait | Lanes:
        warp.cta.machine.current = warp
        wanted = _asked(at[mask].tolist(), phase[mask].tolist())
        found = [(*mbarrier.find(warp, address), value) for address, value in wanted]
        done = [passed(*one) for one in found]
        if suspends and not any(done) and not _answers_early(warp, split):
            return Wait(
                "mbarrier",
                (lambda: passed(*found[0]))
                if len(found) == 1
                else (lambda: any(passed(*one) for one in found)),
                lambda: "; ".join(_describe(*one, parity=parity) for one in found),
                spurious=True,
                begun=lambda: any(cta.mbarriers[offset].begun for cta, offset, _ in found),
            )
        split.token = None
        for (cta, offset, _), ready in zip(found, done, strict=True):
            if ready:
                _acquire(warp, cta, offset, relaxed=relaxed, scope=scope, by=_some(warp, mask))
        if any(done):
            split.spins = 0
        else:
            same = partial(_none_passed, passed, found)
            asked(warp, mask, at[mask].tobytes() + phase[mask].tobytes(), b"no", same)
        if len(done) == 1:
            return ANSWERS[done[0]]
        told = dict(zip(wanted, done, strict=True))
        pairs = zip(at.tolist(), phase.tolist(), strict=True)
        return np.array([told.get(pair, False) for pair in pairs])

    return call


def _none_passed(passed: Callable[..., bool], found: Sequence[tuple[Cta, int, int]]) -> bool:
    """Whether every mbarrier is still there, and in the phase that was asked for."""
    return not any(at not in cta.mbarriers or passed(cta, at, value) for cta, at, value in found)


def _asked(addresses: list[int], phases: list[int]) -> list[tuple[int, int]]:
    """The mbarriers and phases that lanes ask for, each once; mostly it is one."""
    if addresses.count(addresses[0]) == phases.count(phases[0]) == len(addresses):
        return [(addresses[0], phases[0])]
    return list(dict.fromkeys(zip(addresses, phases, strict=True)))


ANSWERS = {answer: constant(answer, 1) for answer in (False, True)}
"""The same answer for every lane."""


def _answers_early(warp: Warp, split: Split) -> bool:
    """Whether a `try_wait` answers "no" though its phase may still complete.

    It may do so after a time of the machine's choosing; a schedule that is late with everything
    does it now and then.
    """
    if split.token is Answer.NOT_YET:
        return True
    machine = warp.cta.machine
    return machine.engine.tempo is Tempo.LAZY and machine.rng.random() < EARLY_ANSWERS


EARLY_ANSWERS = 0.2
"""How often a lazy schedule lets a `try_wait` answer before its phase completes."""


def _some(warp: Warp, mask: Mask) -> Mask | None:
    """The lanes that wait; None where they are all that there are."""
    return None if mask.tobytes() == warp.alive.tobytes() else mask


@dataclass(slots=True)
class _Phases:
    """State of a warp: the phase of each mbarrier that it saw end last."""

    seen: dict[tuple[int, int], int] = field(default_factory=dict)
    """By CTA number and byte offset."""


def _acquire(
    warp: Warp, cta: Cta, offset: int, *, relaxed: bool, scope: Scope, by: Mask | None
) -> None:
    """The waiter knows now what was released to the phase that ended last."""
    phase = cta.mbarriers[offset].phase - 1
    channel = mbarrier.channel(cta, offset, phase)
    cta.machine.bus.emit(Acquire(warp.agent, channel, relaxed=relaxed, scope=scope, by=by))
    seen = warp.units.of(_Phases).seen
    last = seen.get((cta.number, offset))
    if last is not None and phase - last > 1 and (phase - last) % 2 == 0:
        warp.cta.machine.misuse(
            rules.MBARRIER_LAPPED,
            f"the mbarrier at {hex(offset)} went through {phase - last} phases since this warp "
            "looked last: it cannot know which one it saw",
        )
    seen[cta.number, offset] = phase


def _describe(cta: Cta, offset: int, value: int, *, parity: bool) -> str:
    state = cta.mbarriers[offset]
    what = f"parity {value & 1}" if parity else f"phase {value >> 20}"
    return f"mbarrier {hex(offset)} of cta {cta.position} for {what}: {state}"
