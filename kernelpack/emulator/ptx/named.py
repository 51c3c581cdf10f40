"""Which registers an operand names."""

from kernelpack.emulator.ptx.syntax import Address, Negated, Operand, Pair, Register, Vector


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
