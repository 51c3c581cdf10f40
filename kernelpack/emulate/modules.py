"""The modules a program has loaded: texts parsed once, variables placed once, kernels by number."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from kernelpack.emulate import fatbin
from kernelpack.emulate.arena import Arena
from kernelpack.emulate.options import TextOf
from kernelpack.emulator.faults import PtxError
from kernelpack.emulator.machine.cluster import SHARED_START
from kernelpack.emulator.machine.lanes import WIDTH
from kernelpack.emulator.prepare import place_variables
from kernelpack.emulator.ptx.link import lay_out
from kernelpack.emulator.ptx.parser import Entry, Program, parse
from kernelpack.errors import ProblemError, UnsupportedError
from kernelpack.spec.launch import Plan

_TARGET = re.compile(r"\s*\.target\s+sm_(\d+)(\d)([af]?)", re.MULTILINE)


class UnknownNameError(ProblemError):
    """A module has no kernel or variable of that name."""


class HandleError(ProblemError):
    """No module or kernel has that number."""


@dataclass(frozen=True, slots=True)
class Module:
    """A PTX module in memory; `addresses` are those of its variables, for as long as it lives."""

    program: Program
    addresses: Mapping[str, int]

    def variable(self, name: str) -> tuple[int, int]:
        """The address and size of a variable.

        Raises:
            UnknownNameError: there is none.

        """
        for variable in self.program.variables:
            if variable.name == name and name in self.addresses:
                return self.addresses[name], variable.size
        raise UnknownNameError(f"no variable `{name}` in the module")


@dataclass(frozen=True, slots=True)
class Kernel:
    """An entry of a module."""

    module: Module
    entry: Entry

    @property
    def shared_bytes(self) -> int:
        """Static shared memory."""
        layout = lay_out(self.module.program, self.entry, self.module.addresses, SHARED_START)
        return layout.shared_end - SHARED_START

    @property
    def most_threads(self) -> int:
        """Threads of a block at most, as the entry's directives say."""
        return prod(self.entry.directives.get("maxntid", ()) or (1024,))

    def warps(self, plan: Plan) -> tuple[int, int]:
        """CTAs of a cluster, and warps of a CTA, in a launch."""
        fixed = self.entry.directives.get("reqnctapercluster")
        return prod(fixed) if fixed else plan.cluster.count, -(-plan.block.count // WIDTH)


class Modules:
    """The modules that one program has loaded. Modules and kernels are numbered from 0."""

    def __init__(self, arena: Arena, capability: tuple[int, int], text_of: TextOf) -> None:
        self.arena, self.capability, self.text_of = arena, capability, text_of
        self.modules: list[Module] = []
        self.kernels: list[Kernel] = []
        self.has_dependents = False
        """Whether a text speaks of launches that depend on others (PTX ISA 9.7.13.13)."""

    def load(self, image: bytes) -> int:
        """Load an image's PTX for this device; the module's number.

        Raises:
            UnsupportedError: it holds none, or none that this device runs.
            PtxError: the text cannot be read.

        """
        known = self.text_of(image)
        text = choose([known] if known else fatbin.ptx_texts(image), self.capability)
        program = parse(text)
        addresses = place_variables(program, self.arena.memory)
        for variable in program.variables:
            if variable.name in addresses and variable.space in ("global", "const"):
                self.arena.mark(addresses[variable.name], variable.size)
        self.has_dependents |= "griddepcontrol" in text
        self.modules.append(Module(program, addresses))
        return len(self.modules) - 1

    def module(self, number: int) -> Module:
        """A module by its number. Raises HandleError when there is none."""
        if number >= len(self.modules):
            raise HandleError("no module has this handle")
        return self.modules[number]

    def kernel(self, number: int) -> Kernel:
        """A kernel by its number. Raises HandleError when there is none."""
        if number >= len(self.kernels):
            raise HandleError("no kernel has this handle")
        return self.kernels[number]

    def find(self, module: int, name: str) -> int:
        """The number of a module's kernel.

        Raises:
            UnknownNameError: there is none of that name.
            HandleError: there is no such module.

        """
        holder = self.module(module)
        try:
            entry = holder.program.entry(name)
        except PtxError as error:
            raise UnknownNameError(error.what, hint=error.hint) from error
        self.kernels.append(Kernel(holder, entry))
        return len(self.kernels) - 1


def choose(texts: Iterable[str], capability: tuple[int, int]) -> str:
    """The text that a device runs: one made for it, else for its family, else the newest older.

    Raises:
        UnsupportedError: there is none.

    """
    texts = tuple(texts)
    ranked = [(rank, text) for text in texts if (rank := _rank(text, capability)) is not None]
    if not ranked:
        found = sorted({"sm_" + "".join(m.groups()) for t in texts if (m := _TARGET.search(t))})
        device = f"sm_{capability[0]}{capability[1]}"
        raise UnsupportedError(
            f"PTX for {', '.join(found) or 'no target'}, and the device is {device}",
            hint="name the device the program was compiled for, by --device or --predict",
        )
    return max(ranked)[1]


def _rank(text: str, capability: tuple[int, int]) -> tuple[int, int, int] | None:
    """How well a text fits a device; None where it does not."""
    target = _TARGET.search(text)
    if target is None:
        return None
    major, minor, suffix = int(target[1]), int(target[2]), target[3]
    if suffix == "a":
        return (2, major, minor) if (major, minor) == capability else None
    if suffix == "f":
        fits = major == capability[0] and minor <= capability[1]
        return (1, major, minor) if fits else None
    return (0, major, minor) if (major, minor) <= capability else None
