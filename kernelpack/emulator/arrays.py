"""Launch a kernel on numpy arrays: what `<<<grid, block>>>` is to C++.

Arrays are copied into the emulated memory before the launch and back after it; one whose
`writeable` flag is off is not copied back.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.faults import Fault, Level
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.ptx.parser import Program, parse
from kernelpack.emulator.ptx.syntax import Parameter
from kernelpack.emulator.run import Result, run
from kernelpack.emulator.schedule import Schedule
from kernelpack.formats.dtype import DType
from kernelpack.spec.launch import Dim3, Plan, Pointer, Scalar
from kernelpack.spec.tensormap import TensorMap

Argument: TypeAlias = NDArray[Any] | np.generic | int | float | TensorMap
Shape: TypeAlias = int | Sequence[int]
_HEADROOM_BYTES = 1 << 16


def launch(
    ptx: str,
    name: str,
    grid: Shape,
    block: Shape,
    *arguments: Argument,
    cluster: Shape = 1,
    shared_bytes: int = 0,
    memory: GlobalMemory | None = None,
    schedule: Schedule | str = "eager",
    seed: int = 0,
    level: Level = Level.WARN,
) -> Result:
    """Run a kernel of a PTX text.

    Args:
        ptx: the module.
        name: the entry.
        grid: blocks, one to three numbers.
        block: threads of a block, one to three numbers.
        arguments: arrays (a pointer each), numbers, tensor maps over addresses in `memory`.
        cluster: blocks of a cluster, one to three numbers.
        shared_bytes: dynamic shared memory of a block.
        memory: where the arrays are put; a fresh one when left out.
        schedule: an interleaving, or its name.
        seed: of its random choices.
        level: findings above it are not reported.

    Raises:
        Fault: the kernel went wrong in a way that ends a run, or the launch is refused.

    """
    program = parse(ptx)
    parameters = program.entry(name).parameters
    if len(parameters) != len(arguments):
        raise Fault(f"{len(arguments)} arguments for {len(parameters)} parameters", where=name)
    memory = memory or GlobalMemory(_room(program, arguments))
    placed = [
        (argument, memory.put(argument, parameter.name))
        for argument, parameter in zip(arguments, parameters, strict=True)
        if isinstance(argument, np.ndarray)
    ]
    addresses = iter(address for _, address in placed)
    plan = Plan(
        entry=name,
        grid=_dim3(grid),
        block=_dim3(block),
        cluster=_dim3(cluster),
        shared_bytes=shared_bytes,
        arguments=tuple(
            Pointer(next(addresses)) if isinstance(argument, np.ndarray) else _value(argument, at)
            for argument, at in zip(arguments, parameters, strict=True)
        ),
    )
    result = run(program, plan, memory, schedule=schedule, seed=seed, level=level)
    for array, address in placed:
        if array.flags.writeable:
            raw = memory.read(address, array.nbytes)
            array[...] = raw.view(array.dtype).reshape(array.shape)
    return result.raise_on_error()


def _room(program: Program, arguments: Sequence[Argument]) -> int:
    """Bytes of memory that hold the arrays and the module's variables, with red zones."""
    sizes = [a.nbytes for a in arguments if isinstance(a, np.ndarray)]
    sizes += [v.size + v.alignment for v in program.variables]
    return sum(sizes) + 2048 * len(sizes) + _HEADROOM_BYTES


def _dim3(shape: Shape) -> Dim3:
    numbers = (shape,) if isinstance(shape, int) else tuple(shape)
    x, y, z = (*numbers, 1, 1)[:3]
    return Dim3(x, y, z)


_INTEGERS = {1: DType.U8, 2: DType.U16, 4: DType.U32, 8: DType.U64}


def _value(argument: Argument, parameter: Parameter) -> Scalar | TensorMap:
    """A number as the bits of a parameter's size; a Python float as f32 or f64 by that size."""
    if isinstance(argument, TensorMap):
        return argument
    if parameter.size not in _INTEGERS:
        raise Fault(f"a number for a parameter of {parameter.size} bytes", where=parameter.name)
    kind = _INTEGERS[parameter.size]
    if isinstance(argument, float) and not isinstance(argument, np.generic):
        argument = np.dtype(f"f{parameter.size}").type(argument)
    if isinstance(argument, np.generic):
        if argument.nbytes != parameter.size:
            raise Fault(
                f"{argument.nbytes} bytes for a parameter of {parameter.size}",
                where=parameter.name,
            )
        return Scalar(kind, int.from_bytes(argument.tobytes(), "little"))
    assert isinstance(argument, int)
    return Scalar(kind, argument & ((1 << 8 * parameter.size) - 1))
