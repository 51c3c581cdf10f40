"""Launch a kernel on numpy arrays: what `<<<grid, block>>>` is to C++.

Arrays are copied into the emulated memory before the launch and back after it; one whose
`writeable` flag is off is not copied back. Other arguments: `arguments`.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from kernelpack.emulator.arguments import Argument, Arguments, Raw, Struct, arrays_in
from kernelpack.emulator.faults import Level
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.numbers import short
from kernelpack.emulator.ptx.parser import Program, parse
from kernelpack.emulator.run import Result, run
from kernelpack.emulator.schedule import Schedule
from kernelpack.errors import ProblemError
from kernelpack.spec.launch import Dim3, Plan

Shape: TypeAlias = int | Sequence[int]
_HEADROOM_BYTES = 1 << 16


def launch(
    ptx: str,
    name: str,
    grid: Shape,
    block: Shape,
    *arguments: Argument,
    parameters: Struct | Raw | None = None,
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
        arguments: arrays (a pointer each), numbers, structs by value (bytes, ctypes, `Struct`),
            tensor maps (`ArrayMap`, or a `TensorMap` over an address in `memory`), addresses in
            `memory` as integers.
        parameters: in place of arguments the whole parameter block.
        cluster: blocks of a cluster, one to three numbers.
        shared_bytes: dynamic shared memory of a block.
        memory: where the arrays are put; a fresh one when left out.
        schedule: an interleaving, or its name; `starving:RANK:WARP` holds a warp back.
        seed: of its random choices.
        level: findings above it are not reported; or its name, such as `strict`.

    Raises:
        Fault: the kernel went wrong in a way that ends a run, or the launch is refused.
        ProblemError: an argument is not what its parameter takes.
        TensorMapError: a tensor map breaks a rule of the TMA unit.

    """
    _check_types(ptx, schedule, shared_bytes, seed)
    program = parse(ptx)
    entry = program.entry(name)
    given = arguments if parameters is None else (parameters,)
    memory = memory or GlobalMemory(_room(program, given))
    placing = Arguments(memory)
    if parameters is None:
        block_bytes = placing.packed(entry, arguments)
    else:
        _check_alone(arguments)
        block_bytes = placing.block(entry, parameters)
    plan = Plan(
        entry=name,
        grid=_dim3(grid, "grid"),
        block=_dim3(block, "block"),
        cluster=_dim3(cluster, "cluster"),
        shared_bytes=shared_bytes,
        arguments=(),
    )
    result = run(
        program, plan, memory, schedule=schedule, seed=seed, level=level, parameters=block_bytes
    )
    placing.fetch()
    return result.raise_on_error()


def _check_alone(arguments: Sequence[object]) -> None:
    """A parameter block leaves no place for arguments.

    Raises:
        ProblemError: there are some.

    """
    if arguments:
        raise ProblemError(f"{len(arguments)} arguments beside a whole parameter block")


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


def _room(program: Program, arguments: Sequence[object]) -> int:
    """Bytes of memory that hold the arrays and the module's variables, with red zones."""
    sizes = [array.nbytes for array in arrays_in(arguments)]
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
    """Whether it is an integer of 32 bits; True and False are not."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        return False
    return not abs(int(number)) >> 31
