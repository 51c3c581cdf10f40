"""Which registers and symbols an operand names."""

from kernelpack.emulator.ptx.syntax import (
    Address,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)


def register_indices(operand: Operand) -> list[int]:
    """The registers an operand names, as rows of the register file."""
    if isinstance(operand, Register):
        return [operand.index]
    if isinstance(operand, Vector):
        return [index for item in operand.items for index in register_indices(item)]
    if isinstance(operand, Negated):
        return register_indices(operand.operand)
    if isinstance(operand, Pair):
        return register_indices(operand.first) + register_indices(operand.second)
    if isinstance(operand, Address):
        inner = register_indices(operand.base)
        return inner + (register_indices(operand.coordinates) if operand.coordinates else [])
    return []


def symbol_names(operand: Operand) -> list[str]:
    """The variables whose addresses an operand names; labels and functions too."""
    if isinstance(operand, Symbol):
        return [operand.name.split("@")[0]]
    if isinstance(operand, Vector):
        return [name for item in operand.items for name in symbol_names(item)]
    if isinstance(operand, Pair):
        return symbol_names(operand.first) + symbol_names(operand.second)
    if isinstance(operand, Address):
        inner = symbol_names(operand.base)
        return inner + (symbol_names(operand.coordinates) if operand.coordinates else [])
    return []
