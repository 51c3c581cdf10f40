"""Control (PTX ISA 9.7.12, 9.7.19): trap, hints to the scheduler.

Branches, calls and exits are nodes of the translated code; the schedule runs them.
"""

from kernelpack.emulator.events import Acquire
from kernelpack.emulator.faults import Trap
from kernelpack.emulator.machine.lanes import EVERY, Lanes, Mask, constant, to_bits
from kernelpack.emulator.machine.launches import channel
from kernelpack.emulator.machine.warp import Split, Wait, Warp
from kernelpack.emulator.semantics.table import Form, Handler, control, machine


def _nothing(*_arguments: object) -> None:
    """A hint."""


@control("trap brkpt", "9.7.19.4")
def trap(form: Form) -> Handler:
    """The kernel stops itself."""
    instruction = form.instruction

    def call(warp: Warp, _split: Split, _mask: Mask) -> None:
        where = f"cta {warp.cta.position} warp {warp.index} — {instruction.place}"
        raise Trap(f"`{instruction.opcode}`", where=where)

    return call


@control(
    "nanosleep pmevent", "9.7.19.3", operands=("~",), types=("u32",), flags=("mask",), yields=True
)
def sleep(_form: Form) -> Handler:
    """The others run first."""

    def call(_warp: Warp, split: Split, _mask: Mask) -> None:
        split.spins += 1

    return call


@control("griddepcontrol.launch_dependents", "9.7.13.13")
def launch_dependents(_form: Form) -> Handler:
    """The CTA says that the next launch may begin."""

    def call(warp: Warp, _split: Split, _mask: Mask) -> None:
        machine = warp.cta.machine
        machine.queue.trigger(warp.cta.cluster.launch, warp.cta.number)
        machine.changes += 1

    return call


@control("griddepcontrol.wait", "9.7.13.13")
def wait_for_launch(_form: Form) -> Handler:
    """Wait for the end of the launch before, and know what it did."""

    def call(warp: Warp, _split: Split, _mask: Mask) -> Wait | None:
        before, machine = warp.cta.cluster.launch - 1, warp.cta.machine
        if before < 0:
            return None
        if not machine.queue.is_over(before):
            return Wait(
                "grid",
                lambda: machine.queue.is_over(before),
                lambda: "the end of the launch before",
            )
        machine.bus.emit(Acquire(warp.agent, channel(before)))
        return None

    return call


@machine("activemask", "9.7.13.11", operands=("=b32",), types=("b32",))
def active_mask(_form: Form) -> Handler:
    """D = the mask of the lanes that run this."""

    def call(_warp: Warp, mask: Mask | None) -> Lanes:
        return constant(to_bits(EVERY if mask is None else mask), 32)

    return call
