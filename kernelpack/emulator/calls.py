"""Calls and returns: lanes move between the functions of one code (PTX ISA 9.7.12.5, 9.7.12.7)."""

import numpy as np

from kernelpack.emulator.faults import Fault, UnsupportedError
from kernelpack.emulator.machine.frames import MAX_DEPTH, Frame
from kernelpack.emulator.machine.lanes import EVERY, WIDTH, Lanes, Mask
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.ptx import calls
from kernelpack.emulator.ptx.syntax import Callee, Instruction, Register
from kernelpack.emulator.translate.translate import Code, Node


def call(code: Code, warp: Warp, split: Split, node: Node, lanes: Mask) -> None:
    """Lanes of a split enter the function that they name; the others go on after the call.

    Raises:
        Fault: a pointer leads to no function, or calls are nested too deeply.
        UnsupportedError: a function that is active has local memory.
    """
    instruction = code.entry.body.instructions[node.first]
    rest = split.lanes & ~lanes
    splits = [_split(split, rest, split.pc + 1)] if np.count_nonzero(rest) else []
    for callee, there in _callees(code, warp, instruction, lanes):
        _enter(warp, (instruction, split.pc + 1), callee, there)
        splits.append(_split(split, there, code.starts[callee.name]))
    _replace(warp, split, splits)


def leave(warp: Warp, split: Split, lanes: Mask) -> None:
    """Lanes of a split return, each to where it was called from; the others go on."""
    rest = split.lanes & ~lanes
    splits = [_split(split, rest, split.pc + 1)] if np.count_nonzero(rest) else []
    for frame, numbers in warp.stack.pop(np.flatnonzero(lanes).tolist()).items():
        there = np.zeros(WIDTH, bool)
        there[numbers] = True
        _copy(warp, frame.results, there)
        for index, before in frame.registers.items():
            warp.registers[index] = np.where(_wide(there, before), before, warp.registers[index])
        for key, before in frame.parameters.items():
            warp.arguments[key] = np.where(there, before, warp.arguments[key])
        splits.append(_split(split, there, frame.back))
    _replace(warp, split, splits)


def _callees(
    code: Code, warp: Warp, instruction: Instruction, lanes: Mask
) -> list[tuple[Callee, Mask]]:
    """Who is called, and by which lanes."""
    body = code.entry.body
    name = calls.target(instruction)
    if name is not None:
        return [(body.callees[name], lanes)]
    pointer = next(each for each in instruction.operands if isinstance(each, Register))
    addresses = warp.registers[pointer.index]
    by_address = {code.layout.symbols[each].address: body.callees[each] for each in body.callees}
    found = []
    for address in np.unique(addresses[lanes]).tolist():
        if address not in by_address:
            raise Fault(
                f"a call of {address:#x}, which is not a function: `{instruction.text}`",
                where=f"cta {warp.cta.position} warp {warp.index} — {instruction.place}",
            )
        found.append((by_address[address], lanes & (addresses == address)))
    return found


def _enter(warp: Warp, site: tuple[Instruction, int], callee: Callee, lanes: Mask) -> None:
    """Push a frame, and hand the arguments over."""
    instruction, back = site
    numbers = np.flatnonzero(lanes).tolist()
    results, arguments = calls.lists(instruction)
    registers: dict[int, Lanes] = {}
    parameters = {}
    if warp.stack.is_active(callee.name, numbers):
        if callee.has_locals:
            what = f"`{callee.name}` calls itself and has local memory"
            raise UnsupportedError(what, where=instruction.place)
        registers = {index: warp.registers[index] for index in callee.registers}
        names = {*callee.parameters, *callee.results}
        parameters = {key: value for key, value in warp.arguments.items() if key[0] in names}
    pairs = tuple(zip(callee.results, results, strict=True))
    depth = warp.stack.push(Frame(callee.name, back, pairs, registers, parameters), numbers)
    if depth > MAX_DEPTH:
        raise Fault(
            f"more than {MAX_DEPTH} calls within each other",
            where=f"cta {warp.cta.position} warp {warp.index} — {instruction.place}",
        )
    _copy(warp, tuple(zip(arguments, callee.parameters, strict=True)), lanes)


def _copy(warp: Warp, pairs: tuple[tuple[str, str], ...], lanes: Mask) -> None:
    """Copy parameters of lanes, by name: (from, to)."""
    to = dict(pairs)
    for (name, at), value in list(warp.arguments.items()):
        if name in to:
            warp.hand((to[name], at), value, lanes)


def _wide(lanes: Mask, value: Lanes) -> Lanes:
    return lanes[:, None] if value.ndim > 1 else lanes


def _split(split: Split, lanes: Mask, pc: int) -> Split:
    mask = None if lanes.tobytes() == EVERY.tobytes() else lanes
    return Split(pc, mask, spins=split.spins)


def _replace(warp: Warp, split: Split, splits: list[Split]) -> None:
    at = warp.splits.index(split)
    warp.splits[at : at + 1] = splits
