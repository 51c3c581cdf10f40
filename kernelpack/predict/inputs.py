"""A launch at its real size that no data fills: what is large is zero, and takes no memory.

A time depends on sizes, and on the numbers that steer a kernel: offsets, ids, indices, tables,
lengths. Other values hardly matter, so they are zeros that nobody wrote: a page of them takes
memory when a kernel touches it. (Each byte has a byte of state beside it, which does.)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from kernelpack.emulator.machine.memory import RED_ZONE_BYTES, GlobalMemory
from kernelpack.emulator.ptx.parser import Program
from kernelpack.emulator.watch import Watch
from kernelpack.predict.watched import MOST_STEPS
from kernelpack.spec.launch import Plan, bytes_of, resolve
from kernelpack.spec.params import Argument
from kernelpack.spec.variant import Variant

Arrays = Mapping[str, NDArray[Any]]
STEERING_BITS = 32
"""Integers of at least as many say where data lies; smaller ones are codes of 4 or 8 bits."""
_AROUND_BYTES = 2 * RED_ZONE_BYTES + 512
_HEADROOM_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A launch that may run: `emulator.run` takes what it has under the same names.

    Attributes:
        program: the PTX.
        plan: the launch; its addresses are those of `memory`.
        memory: holds every argument.
        parameters: the parameter block as a host program packed it, in place of `plan.arguments`.
        addresses: where a host program's module has its variables.
        variant: the kernel of a bundle; None of a host program's.
        sizes: its problem and the device, by name.
        most_steps: warp instructions after which a cluster of it counts as endless.
        watch: is shown its runs.

    """

    program: Program
    plan: Plan
    memory: GlobalMemory
    parameters: bytes | None = None
    addresses: Mapping[str, int] | None = None
    variant: Variant | None = None
    sizes: Mapping[str, float] = field(default_factory=dict)
    most_steps: int = MOST_STEPS
    watch: Watch | None = None


def prepared(
    program: Program, variant: Variant, sizes: Mapping[str, float], arrays: Arrays
) -> Prepared:
    """A variant on a problem.

    Args:
        program: the variant's PTX.
        variant: the kernel and how to launch it.
        sizes: the problem and the device, name → integer.
        arrays: by argument name; of those alone that `steers` are the values used. What is left
            out is zero.

    Raises:
        ProblemError: the launch exceeds a limit.
        TensorMapError: a tensor map breaks a rule of the TMA unit.
        EmulationError: this machine has no room for the arguments.

    """
    least = bytes_of(variant, sizes)
    steering = {a.name for a in variant.arguments if steers(a)}
    taken = {name: arrays[name] for name in least if name in steering and name in arrays}
    needed = [max(least[n], taken[n].nbytes if n in taken else 0) for n in least]
    needed += [variable.size + variable.alignment for variable in program.variables]
    memory = GlobalMemory(sum(needed) + _AROUND_BYTES * len(needed) + _HEADROOM_BYTES)
    addresses = {
        name: memory.put(taken[name], name) if name in taken else memory.zeros(size, name)
        for name, size in least.items()
    }
    plan = resolve(variant, sizes, addresses)
    return Prepared(variant=variant, sizes=sizes, program=program, plan=plan, memory=memory)


def steers(argument: Argument) -> bool:
    """Whether a kernel's way may depend on an argument's values: they are whole words."""
    return not argument.dtype.is_float and argument.dtype.bits >= STEERING_BITS
