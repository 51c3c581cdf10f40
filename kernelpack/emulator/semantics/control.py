"""Control (PTX ISA 9.7.12, 9.7.19): trap, calls to the device library, hints to the scheduler.

Branches and exits are nodes of the translated code; the schedule runs them.
"""

import numpy as np

from kernelpack.emulator.faults import Trap
from kernelpack.emulator.machine.lanes import EVERY, Lanes, Mask, constant, to_bits
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.ptx.syntax import Instruction, Symbol
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


@control("griddepcontrol.launch_dependents griddepcontrol.wait", "9.7.13.13")
def grid_dependency(_form: Form) -> Handler:
    """Launches run one after the other here: what was launched before has ended."""
    return _nothing


def _called(instruction: Instruction) -> tuple[str, int]:
    """The name of the function called, and where its argument list stands."""
    for position, operand in enumerate(instruction.operands):
        if isinstance(operand, Symbol):
            return operand.name, position + 1
    return "", 0


@control("call", "9.7.12.5", operands=("~", "~?", "~?", "~?"), flags=("uni",))
def call_function(form: Form) -> Handler:
    """The two functions of the device library that kernels keep: `vprintf`, `__assertfail`."""
    name, _ = _called(form.instruction)
    if name == "vprintf":
        return _print
    if name == "__assertfail":
        return _assertion_failed
    raise form.unsupported(f"a call of `{name}`")


def _text(warp: Warp, address: int) -> str:
    """The C string at a generic address in global memory."""
    memory = warp.cta.machine.memory
    start = address - memory.base
    if not 0 <= start < memory.size:
        return hex(address)
    raw = bytes(memory.bytes[start : start + 1024])
    return raw.split(b"\0")[0].decode("latin-1")


def _print(warp: Warp, _split: Split, mask: Mask) -> None:
    first = int(np.argmax(mask))
    pointer = next((v for (name, at), v in warp.arguments.items() if at == 0), None)
    if pointer is not None:
        warp.cta.machine.printed.append(_text(warp, int(pointer[first])))


def _assertion_failed(warp: Warp, _split: Split, mask: Mask) -> None:
    first = int(np.argmax(mask))
    message = _argument_text(warp, first)
    raise Trap(
        f"device assertion failed: {message}", where=f"cta {warp.cta.position} warp {warp.index}"
    )


def _argument_text(warp: Warp, lane: int) -> str:
    values: list[Lanes] = [v for (_, at), v in sorted(warp.arguments.items()) if at == 0]
    return _text(warp, int(values[0][lane])) if values else ""


@machine("activemask", "9.7.13.10", operands=("=b32",), types=("b32",))
def active_mask(_form: Form) -> Handler:
    """D = the mask of the lanes that run this."""

    def call(_warp: Warp, mask: Mask | None) -> Lanes:
        return constant(to_bits(EVERY if mask is None else mask), 32)

    return call
