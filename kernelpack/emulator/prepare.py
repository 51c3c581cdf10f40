"""A prepared launch: its code, its parameters, its variables at their places."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from kernelpack.emulator import limits
from kernelpack.emulator.faults import Fault, PtxError
from kernelpack.emulator.machine import tensor_map
from kernelpack.emulator.machine.cluster import SHARED_START
from kernelpack.emulator.machine.lanes import WIDTH
from kernelpack.emulator.machine.launched import Launched, parameter_memory
from kernelpack.emulator.machine.memory import GlobalMemory, OnBad
from kernelpack.emulator.machine.units import Units
from kernelpack.emulator.ptx.link import Layout, lay_out
from kernelpack.emulator.ptx.parser import Entry, Program
from kernelpack.emulator.schedule import Schedule
from kernelpack.emulator.translate.translate import Code, translate
from kernelpack.spec.launch import Plan, Pointer, Scalar
from kernelpack.spec.tensormap import TensorMap


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependent:
    """A launch that may begin before the one before it has ended (PTX ISA 9.7.13.13).

    As the arguments of `run` of the same names say it; findings call it by its `name`.
    """

    program: Program
    plan: Plan
    parameters: bytes | None = None
    addresses: Mapping[str, int] | None = None
    workspace: int = 0
    name: str = ""


def prepare(
    wanted: Sequence[Dependent], memory: GlobalMemory, schedule: Schedule, on_bad: OnBad
) -> list[tuple[Launched, Code]]:
    """The prepared form of each launch; one that comes again has one code.

    `on_bad` is called with bad reads of parameters.
    """
    made: list[tuple[Launched, Code]] = []
    first_cta = 0
    for index, (each, before) in enumerate(zip(wanted, (None, *wanted), strict=False)):
        new, code = made[-1] if each is before else _made(each, memory, schedule, on_bad)
        launched = replace(new, index=index, first_cta=first_cta, units=Units())
        made.append((launched, code))
        first_cta += prod(launched.shape.grid)
    return made


def _made(
    wanted: Dependent, memory: GlobalMemory, schedule: Schedule, on_bad: OnBad
) -> tuple[Launched, Code]:
    """A launch, numbered as the first one, and its code.

    Its variables are placed where they are nowhere yet.
    """
    module, plan = wanted.program, wanted.plan
    entry, addresses = module.entry(plan.entry), wanted.addresses
    if addresses is None:
        addresses = place_variables(module, memory)
    layout = lay_out(module, entry, addresses, SHARED_START)
    shape = limits.shape(entry, plan, layout)
    schedule.check(prod(shape.cluster), -(-plan.block.count // WIDTH))
    given = wanted.parameters
    code = translate(entry, layout)
    launched = Launched(
        name=wanted.name or plan.entry,
        shape=shape,
        parameters=parameter_memory(
            pack_arguments(entry, plan) if given is None else _whole(entry, given), on_bad
        ),
        shared_bytes=max(layout.shared_end - SHARED_START, 0) + plan.shared_bytes,
        shared_names=_shared_names(module, entry, layout, plan.shared_bytes),
        widths=code.widths,
        local_bytes=layout.local_bytes,
        workspace=wanted.workspace,
        index=0,
        first_cta=0,
    )
    return launched, code


def _shared_names(
    module: Program, entry: Entry, layout: Layout, dynamic_bytes: int
) -> dict[int, tuple[int, str]]:
    """The variables in shared memory by offset: their sizes and names."""
    variables = (*entry.body.variables, *module.variables)
    named = {
        layout.symbols[v.name].address: (v.size, v.name)
        for v in variables
        if v.space == "shared" and not v.external
    }
    if dynamic_bytes:
        named[layout.shared_end] = dynamic_bytes, "dynamic shared memory"
    return named


def place_variables(program: Program, memory: GlobalMemory) -> dict[str, int]:
    """Allocate and initialise the global and constant variables that the module defines."""
    addresses: dict[str, int] = {}
    wanted = [v for v in program.variables if v.space in ("global", "const") and not v.external]
    for variable in wanted:
        alignment = max(variable.alignment, 16)
        addresses[variable.name] = memory.allocate(
            variable.size, variable.name, alignment=alignment
        )
    for variable in wanted:
        raw = bytearray(variable.initial.ljust(variable.size, b"\0"))
        for offset, symbol in variable.relocations:
            base = addresses.get(symbol.name, program.functions.addresses.get(symbol.name))
            if base is None:
                raise PtxError(f"`{variable.name}` holds the address of unknown `{symbol.name}`")
            value = base + symbol.offset
            raw[offset : offset + 8] = value.to_bytes(8, "little")
        memory.write_bytes(addresses[variable.name], bytes(raw))
    return addresses


def pack_arguments(entry: Entry, plan: Plan) -> bytes:
    """The parameter block of a launch.

    Raises:
        Fault: the arguments are not those the entry declares, by number or size.
    """
    if len(plan.arguments) != len(entry.parameters):
        raise Fault(
            f"{len(plan.arguments)} arguments for {len(entry.parameters)} parameters",
            where=entry.name,
        )
    block = bytearray(entry.parameter_bytes)
    for argument, parameter in zip(plan.arguments, entry.parameters, strict=True):
        raw = _bytes_of(argument)
        if len(raw) != parameter.size:
            raise Fault(
                f"argument of {len(raw)} bytes for `{parameter.name}` of {parameter.size}",
                where=entry.name,
            )
        block[parameter.offset : parameter.offset + len(raw)] = raw
    return bytes(block)


def _whole(entry: Entry, parameters: bytes) -> bytes:
    """A parameter block of the size the entry declares.

    Raises:
        Fault: it is shorter or longer.
    """
    if len(parameters) != entry.parameter_bytes:
        raise Fault(
            f"{len(parameters)} bytes of parameters; the kernel takes {entry.parameter_bytes}",
            where=entry.name,
        )
    return parameters


def _bytes_of(argument: Pointer | Scalar | TensorMap) -> bytes:
    if isinstance(argument, Pointer):
        return argument.address.to_bytes(8, "little")
    if isinstance(argument, TensorMap):
        return tensor_map.encode(argument)
    return argument.raw
