"""Run a variant on numpy arrays: resolve → run → outputs. The emulator's launch.

The plan is the one a GPU would get: grid, shared memory, arguments and tensor maps come from the
variant. Inputs are copied into the emulated memory, which has red zones around each of them;
outputs start as poison, so that a float that was never written comes back as NaN. An argument of
no elements is absent: a null pointer, and no output.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.checks import ALL, Check, Reporter
from kernelpack.emulator.faults import Level
from kernelpack.emulator.machine.memory import RED_ZONE_BYTES, GlobalMemory
from kernelpack.emulator.ptx.parser import Program
from kernelpack.emulator.run import STEP_LIMIT, Result, run
from kernelpack.emulator.schedule import Schedule
from kernelpack.errors import ProblemError
from kernelpack.spec.expr import evaluate
from kernelpack.spec.launch import Plan, is_absent, resolve
from kernelpack.spec.params import Access, Argument
from kernelpack.spec.variant import Variant

Arrays = Mapping[str, NDArray[Any]]
_ALIGNMENT_BYTES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The result of a call: the launch, the arrays the kernel may write, and the run.

    `disturbed` are the inputs that it changed, which it may only read.
    """

    plan: Plan
    outputs: dict[str, NDArray[Any]]
    result: Result
    disturbed: tuple[str, ...] = ()


def call(
    program: Program,
    variant: Variant,
    sizes: Mapping[str, float],
    arrays: Arrays,
    *,
    checks: Iterable[Callable[[Reporter], Check]] = ALL,
    schedule: Schedule | str = "eager",
    seed: int = 0,
    level: Level | str = Level.WARN,
    step_limit: int = STEP_LIMIT,
    exact: bool = False,
) -> Call:
    """Run a variant on a problem.

    Args:
        program: the variant's PTX.
        variant: the kernel and how to launch it.
        sizes: the problem and the device, name → integer.
        arrays: by argument name: every argument that the kernel reads; of one that it writes, what
            lies there before.
        checks: who listens to the run.
        schedule: an interleaving, or its name.
        seed: of the choices it leaves open.
        level: findings above it are not reported; or its name.
        step_limit: warp instructions after which the run is given up.
        exact: whether tensor cores add up as measured on hardware, which is slow, or in float64.

    Raises:
        ProblemError: an array is missing, too small or of another type, or the launch exceeds a
            limit.
        Fault: there is no such schedule of this launch.
        TensorMapError: a tensor map breaks a rule of the TMA unit.
        UnsupportedError: the kernel uses something that is not modelled.

    """
    present = [a for a in variant.arguments if not is_absent(a, sizes)]
    shapes = {a.name: tuple(evaluate(side, sizes) for side in a.shape) for a in present}
    memory = GlobalMemory(_room(program, present, shapes, arrays))
    addresses = {a.name: _place(memory, a, shapes[a.name], arrays) for a in present}
    plan = resolve(variant, sizes, addresses)
    result = run(
        program,
        plan,
        memory,
        checks=checks,
        schedule=schedule,
        seed=seed,
        level=level,
        step_limit=step_limit,
        exact=exact,
    )
    outputs = {
        a.name: _fetch(memory, addresses[a.name], a, shapes[a.name])
        for a in present
        if a.access is not Access.READ
    }
    disturbed = tuple(
        a.name
        for a in present
        if a.access is Access.READ and _differs(memory, addresses[a.name], arrays[a.name])
    )
    return Call(plan=plan, outputs=outputs, result=result, disturbed=disturbed)


def _place(memory: GlobalMemory, argument: Argument, shape: tuple[int, ...], arrays: Arrays) -> int:
    """The address of an argument: of its array's bytes, or of poison that is to be written."""
    least = argument.dtype.bytes_of(int(np.prod(shape)))
    if argument.name not in arrays:
        if argument.access is Access.WRITE:
            return memory.allocate(least, argument.name)
        raise ProblemError(f"no array for argument `{argument.name}`")
    array = arrays[argument.name]
    _check_type(argument, array)
    if array.nbytes < least:
        raise ProblemError(
            f"`{argument.name}` has {array.nbytes} bytes; the kernel may touch {least}"
        )
    if argument.access is Access.WRITE:
        return memory.put_unwritten(array, argument.name)
    return memory.put(array, argument.name)


def _check_type(argument: Argument, array: NDArray[Any]) -> None:
    """Refuse another type than the kernel's; integers of its size may stand for any bits."""
    wanted, found = argument.dtype.numpy, array.dtype
    is_raw = found.itemsize == wanted.itemsize and "i" in (_kind(found), _kind(wanted))
    if found != wanted and not is_raw:
        what = f"`{argument.name}` is {found}; the kernel takes {argument.dtype.label}"
        raise ProblemError(what)


def _kind(dtype: np.dtype[Any]) -> str:
    return "i" if dtype.kind in "iu" else dtype.kind


def _fetch(
    memory: GlobalMemory, address: int, argument: Argument, shape: tuple[int, ...]
) -> NDArray[Any]:
    raw = memory.read(address, argument.dtype.bytes_of(int(np.prod(shape))))
    return raw.view(argument.dtype.numpy).reshape(shape)


def _differs(memory: GlobalMemory, address: int, array: NDArray[Any]) -> bool:
    """Whether an array's copy has other bytes than the array."""
    return memory.read(address, array.nbytes).tobytes() != array.tobytes()


def _room(
    program: Program,
    present: Iterable[Argument],
    shapes: Mapping[str, tuple[int, ...]],
    arrays: Arrays,
) -> int:
    """Bytes of memory that hold the arguments and the module's variables, with red zones."""
    sizes = [
        max(
            argument.dtype.bytes_of(int(np.prod(shapes[argument.name]))),
            arrays[argument.name].nbytes if argument.name in arrays else 0,
        )
        for argument in present
    ]
    sizes += [variable.size + variable.alignment for variable in program.variables]
    around = 2 * (RED_ZONE_BYTES + _ALIGNMENT_BYTES)
    return sum(sizes) + around * (len(sizes) + 8)
