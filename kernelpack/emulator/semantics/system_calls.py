"""Calls of what the device's own library provides: printf, assert, malloc and free."""

import re
from typing import Any

import numpy as np

from kernelpack.emulator.faults import AssertionFailed, EmulationError
from kernelpack.emulator.machine.lanes import WIDTH, Lanes, Mask
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.ptx import calls
from kernelpack.emulator.semantics import access
from kernelpack.emulator.semantics.table import Form, Handler, control

_SPEC = re.compile(
    r"%([-+ #0]*)(\*|\d*)(?:\.(\*|\d*))?(?:hh|h|ll|l|L|z|j|t)?([diouxXeEfFgGaAcsp%])"
)
_WIDE = re.compile(r"(?:ll|l|z|j|t)[diouxX]$|[eEfFgGaAsp]$")
_MOST = 1024


@control("call", "9.7.12.5", operands=("~", "~?", "~?", "~?"), flags=("uni",))
def call_function(form: Form) -> Handler:
    """A function that the module only declares."""
    name = calls.target(form.instruction)
    handler = _CALLS.get(name or "")
    if handler is None:
        raise form.unsupported(
            f"a call of `{name or 'a pointer'}`, which the module does not define"
        )
    results, arguments = calls.lists(form.instruction)

    def call(warp: Warp, _split: Split, mask: Mask) -> None:
        values = [warp.arguments[each, 0] for each in arguments]
        result = handler(warp, mask, form, *values)
        if result is not None and results:
            warp.hand((results[0], 0), result, mask)

    return call


def _text(warp: Warp, address: int) -> str:
    """The C string at a generic address in global memory."""
    memory = warp.cta.machine.memory
    start = address - memory.base
    if not 0 <= start < memory.size:
        return hex(address)
    raw = bytes(memory.bytes[start : start + _MOST])
    return raw.split(b"\0")[0].decode("utf-8", "replace")


def _printf(warp: Warp, mask: Mask, _form: Form, text: Lanes, buffer: Lanes) -> Lanes:
    """Each lane's line, in order of lanes; the number of its arguments."""
    specs: dict[int, list[re.Match[str]]] = {}
    for lane in access.each_lane(mask):
        address = int(text[lane])
        if address not in specs:
            specs[address] = list(_SPEC.finditer(_text(warp, address)))
        one = np.zeros(WIDTH, bool)
        one[lane] = True
        values = _Values(warp, one, buffer)
        line, end, template = "", 0, _text(warp, address)
        for spec in specs[address]:
            line += template[end : spec.start()] + values.shown(spec)
            end = spec.end()
        warp.cta.machine.printed.append(line + template[end:])
    return np.full(WIDTH, len(next(iter(specs.values()), [])), np.uint32)


class _Values:
    """The arguments of one lane's printf, one after the other, each aligned to its size."""

    def __init__(self, warp: Warp, lane: Mask, buffer: Lanes) -> None:
        self.warp, self.lane, self.at = warp, lane, buffer.copy()

    def take(self, size: int) -> Any:  # noqa: ANN401
        """The next one, as unsigned bits."""
        step = np.uint64(size)
        self.at = (self.at + step - np.uint64(1)) // step * step
        (found,) = access.load(self.warp, self.lane, self.at, "generic", size=size)
        self.at = self.at + step
        return found[self.lane.argmax()]

    def shown(self, spec: re.Match[str]) -> str:
        """A directive, filled in."""
        flags, width, precision, kind = spec.groups()
        if kind == "%":
            return "%"
        width = str(self.take(4).view(np.int32)) if width == "*" else width
        precision = str(self.take(4).view(np.int32)) if precision == "*" else precision
        head = f"%{flags}{width}" + ("" if precision is None else f".{precision}")
        bits = self.take(8 if _WIDE.search(spec[0]) else 4)
        if kind in "eEfFgG":
            return (head + kind) % float(bits.view(np.float64))
        if kind in "aA":
            return float(bits.view(np.float64)).hex()
        if kind == "s":
            return (head + "s") % _text(self.warp, int(bits))
        if kind == "c":
            return (head + "c") % chr(int(bits) & 0xFF)
        if kind == "p":
            return (head + "s") % hex(int(bits))
        signed = bits.view(np.dtype(f"i{bits.itemsize}")) if kind in "di" else bits
        return (head + kind) % int(signed)


def _fail(
    warp: Warp, mask: Mask, form: Form, message: Lanes, file: Lanes, line: Lanes, function: Lanes,
    _size: Lanes,
) -> None:  # fmt: skip
    """An assertion does not hold.

    Raises:
        AssertionFailed: of the first lane.
    """
    lane = int(np.argmax(mask))
    words = [_text(warp, int(each[lane])) for each in (file, function, message)]
    x, y, _ = warp.cta.launched.shape.block
    thread = int(warp.threads[lane])
    raise AssertionFailed(
        f"{words[0]}:{int(line[lane])}: {words[1]}: block: {warp.cta.position}, thread: "
        f"{(thread % x, thread // x % y, thread // (x * y))} Assertion `{words[2]}` failed",
        where=f"cta {warp.cta.position} warp {warp.index} — {form.instruction.place}",
    )


def _malloc(warp: Warp, mask: Mask, _form: Form, size: Lanes) -> Lanes:
    """Memory for each lane, fresh; null where the device's memory is full."""
    memory = warp.cta.machine.memory
    found = np.zeros(WIDTH, np.uint64)
    for lane in access.each_lane(mask):
        found[lane] = _allocate(memory, int(size[lane]))
    return found


def _allocate(memory: GlobalMemory, size: int) -> int:
    try:
        return memory.allocate(size, "a kernel's malloc", alignment=16)
    except EmulationError:
        return 0  # as on a GPU whose heap is full


def _free(warp: Warp, mask: Mask, form: Form, address: Lanes) -> None:
    """Free memory of each lane's.

    Raises:
        Fault: nothing begins there.
    """
    for lane in access.each_lane(mask):
        if int(address[lane]):
            where = f"cta {warp.cta.position} warp {warp.index} — {form.instruction.place}"
            warp.cta.machine.memory.forget(int(address[lane]), where)


_CALLS: dict[str, Any] = {
    "vprintf": _printf, "__assertfail": _fail, "malloc": _malloc, "free": _free,
}  # fmt: skip
