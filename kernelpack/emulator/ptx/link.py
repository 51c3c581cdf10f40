"""Where the symbols of an entry are: offsets in their spaces, addresses in global memory."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kernelpack.emulator.ptx.parser import Entry, Program
from kernelpack.emulator.ptx.syntax import Variable

WIDEST_BYTES = 32
"""The widest access: each thread's local memory begins at a multiple of it."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """An address and its space; all but global ones are offsets in that space."""

    space: str
    address: int


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The symbols of one entry.

    `shared_end` is where the dynamic shared memory begins; `local_bytes` is a thread's.
    """

    symbols: Mapping[str, Place]
    shared_end: int
    local_bytes: int

    def key(self, named: Collection[str]) -> tuple[object, ...]:
        """The key of layouts that are equal to code that names these symbols.

        Global variables lie elsewhere in each memory; most are constants that no code names.
        """
        symbols = [
            item for item in self.symbols.items() if item[1].space != "global" or item[0] in named
        ]
        return (tuple(sorted(symbols)), self.shared_end, self.local_bytes)


def lay_out(
    program: Program, entry: Entry, addresses: Mapping[str, int], shared_start: int
) -> Layout:
    """Place every symbol the entry can name; `addresses` are those of the module's variables."""
    symbols = {name: Place("global", address) for name, address in addresses.items()}
    symbols |= {
        name: Place("code", address) for name, address in program.functions.addresses.items()
    }
    own = [v for v in entry.body.variables if v.space == "shared"]
    module = [v for v in program.variables if v.space == "shared" and not v.external]
    dynamic = [v for v in program.variables if v.space == "shared" and v.external]
    end = _stack(symbols, "shared", [*own, *module], shared_start)
    end = -(-end // 16) * 16
    for variable in dynamic:
        end = -(-end // variable.alignment) * variable.alignment
    for variable in dynamic:
        symbols[variable.name] = Place("shared", end)
    local = _stack(symbols, "local", [v for v in entry.body.variables if v.space == "local"], 0)
    for parameter in entry.parameters:
        symbols[parameter.name] = Place("param", parameter.offset)
    return Layout(symbols, end, -(-local // WIDEST_BYTES) * WIDEST_BYTES)


def _stack(symbols: dict[str, Place], space: str, variables: Iterable[Variable], start: int) -> int:
    """Place variables one after the other; the end of the last."""
    for variable in variables:
        start = -(-start // variable.alignment) * variable.alignment
        symbols[variable.name] = Place(space, start)
        start += variable.size
    return start
