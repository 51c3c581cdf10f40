"""Launch a kernel on numpy arrays: what `<<<grid, block>>>` is to C++.

Arrays are copied into the emulated memory before the launch and back after it; one whose
`writeable` flag is off is not copied back.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.faults import Fault, Level
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.numbers import scalar, short
from kernelpack.emulator.ptx.parser import Program, parse
from kernelpack.emulator.ptx.syntax import Parameter
from kernelpack.emulator.run import Result, run
from kernelpack.emulator.schedule import Schedule
from kernelpack.errors import ProblemError
from kernelpack.spec.launch import Dim3, Plan, PlanArgument, Pointer
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
    level: Level | str = Level.WARN,
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
        level: findings above it are not reported; or its name, such as `strict`.

    Raises:
        Fault: the kernel went wrong in a way that ends a run, or the launch is refused.
        ProblemError: an argument is not what its parameter takes.

    """
    _check_types(ptx, schedule, shared_bytes, seed)
    program = parse(ptx)
    parameters = program.entry(name).parameters
    if len(parameters) != len(arguments):
        raise Fault(f"{len(arguments)} arguments for {len(parameters)} parameters", where=name)
    memory = memory or GlobalMemory(_room(program, arguments))
    placed = [
        (argument, memory.put(_plain(argument, parameter), parameter.name))
        for argument, parameter in zip(arguments, parameters, strict=True)
        if isinstance(argument, np.ndarray)
    ]
    addresses = iter(address for _, address in placed)
    plan = Plan(
        entry=name,
        grid=_dim3(grid, "grid"),
        block=_dim3(block, "block"),
        cluster=_dim3(cluster, "cluster"),
        shared_bytes=shared_bytes,
        arguments=tuple(
            _planned(argument, parameter, addresses)
            for argument, parameter in zip(arguments, parameters, strict=True)
        ),
    )
    result = run(program, plan, memory, schedule=schedule, seed=seed, level=level)
    for array, address in placed:
        if array.flags.writeable:
            raw = memory.read(address, array.nbytes)
            array[...] = raw.view(array.dtype).reshape(array.shape)
    return result.raise_on_error()


def _planned(argument: Argument, parameter: Parameter, addresses: Iterator[int]) -> PlanArgument:
    """An argument as a plan has it; arrays take the next address."""
    if isinstance(argument, np.ndarray):
        return Pointer(next(addresses))
    return argument if isinstance(argument, TensorMap) else scalar(argument, parameter)


def _plain(array: NDArray[Any], parameter: Parameter) -> NDArray[Any]:
    """An array whose bytes mean to a kernel what they mean here.

    Raises:
        ProblemError: its elements are Python's objects, or of the other byte order.

    """
    if array.dtype.hasobject or not array.dtype.isnative:
        what = f"an array of {array.dtype!r}: a kernel cannot read its elements"
        raise ProblemError(what, where=parameter.name, hint="convert it with `astype`")
    return array


def _check_types(ptx: object, schedule: object, shared_bytes: object, seed: object) -> None:
    """Refuse what is not a text, a schedule or a number where one is expected.

    Raises:
        ProblemError: names it.

    """
    for name, given, holds, rule in (
        ("ptx", ptx, isinstance(ptx, str), "a text"),
        ("schedule", schedule, isinstance(schedule, str | Schedule), "a schedule or its name"),
        ("shared_bytes", shared_bytes, _is_integer(shared_bytes), "an integer of 32 bits"),
        ("seed", seed, isinstance(seed, int), "an integer"),
    ):
        if not holds:
            raise ProblemError(f"`{name}` must be {rule}, not of type {type(given).__name__}")


def _room(program: Program, arguments: Sequence[Argument]) -> int:
    """Bytes of memory that hold the arrays and the module's variables, with red zones."""
    sizes = [a.nbytes for a in arguments if isinstance(a, np.ndarray)]
    sizes += [v.size + v.alignment for v in program.variables]
    return sum(sizes) + 2048 * len(sizes) + _HEADROOM_BYTES


def _dim3(shape: Shape, name: str) -> Dim3:
    """One to three counts.

    Raises:
        ProblemError: they are more, none, or no counts.

    """
    numbers = shape if isinstance(shape, Sequence) else (shape,)
    if not 1 <= len(numbers) <= 3 or not all(map(_is_count, numbers)):
        what = f"`{name}` is one to three counts below 2^31, not {short(shape)}"
        raise ProblemError(what, hint="such as 16 or (16, 2)")
    return Dim3(*map(int, numbers))


def _is_count(number: object) -> bool:
    return _is_integer(number) and int(number) > 0  # type: ignore[call-overload]


def _is_integer(number: object) -> bool:
    """Whether it is an integer of 32 bits; True and False are none."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        return False
    return not abs(int(number)) >> 31
