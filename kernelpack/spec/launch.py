"""A launch with every number known (`Plan`), and how a variant and a problem become one.

The GPU and the emulator run the same `Plan`, so what the emulator proves covers the grid, the
shared-memory size, the order of the arguments and the tensor maps, not the kernel's body alone.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod

from kernelpack.errors import ExpressionError, ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.spec import tensormap
from kernelpack.spec.arch import Arch
from kernelpack.spec.expr import Expr, evaluate
from kernelpack.spec.fitting import Cta, Fits, Fitting, of_target
from kernelpack.spec.number import code, number, rounded
from kernelpack.spec.params import (
    Argument,
    MapParam,
    NumberParam,
    Param,
    PointerParam,
    ScalarParam,
)
from kernelpack.spec.tensormap import TensorMap
from kernelpack.spec.variant import Variant


@dataclass(frozen=True, slots=True)
class Dim3:
    """Counts along x, y, z."""

    x: int
    y: int = 1
    z: int = 1

    @property
    def count(self) -> int:
        """How many there are in all."""
        return self.x * self.y * self.z

    def __iter__(self) -> Iterator[int]:
        yield from (self.x, self.y, self.z)


@dataclass(frozen=True, slots=True)
class Pointer:
    """A device address, bytes."""

    address: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """An integer of a data type, or a number that one holds."""

    dtype: DType
    value: float

    @property
    def raw(self) -> bytes:
        """Its bytes in the parameter block."""
        bits = code(self.value, self.dtype) if self.dtype.is_float else int(self.value)
        size = self.dtype.bits // 8
        return (bits & ((1 << 8 * size) - 1)).to_bytes(size, "little")


PlanArgument = Pointer | Scalar | TensorMap


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A launch with every number known. The GPU and the emulator run the same one."""

    entry: str
    grid: Dim3
    block: Dim3
    cluster: Dim3 = Dim3(1)
    shared_bytes: int = 0
    arguments: tuple[PlanArgument, ...] = ()
    programmatic: bool = False  # may start before the kernel ahead of it in the stream has ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a launch is laid out; `fitting` is how many clusters of so many of its CTAs fit."""

    grid: Dim3
    block: Dim3
    cluster: Dim3
    shared_bytes: int
    fitting: Fitting


def shape_of(variant: Variant, sizes: Mapping[str, float], fits: Fits | None = None) -> Shape:
    """How a launch is laid out; arguments and errors as of `resolve`."""
    block, shared_bytes, fitting = _cta(variant, sizes, fits)
    return Shape(
        grid=_dim3(variant.launch.grid, sizes, fitting),
        block=block,
        cluster=_dim3(variant.launch.cluster, sizes, fitting),
        shared_bytes=shared_bytes,
        fitting=fitting,
    )


def cluster_of(variant: Variant, sizes: Mapping[str, float]) -> tuple[Dim3, Dim3]:
    """The block and the cluster of a launch, whatever its grid; errors as of `resolve`."""
    block, _, fitting = _cta(variant, sizes, None)
    return block, _dim3(variant.launch.cluster, sizes, fitting)


def _cta(
    variant: Variant, sizes: Mapping[str, float], fits: Fits | None
) -> tuple[Dim3, int, Fitting]:
    """A block, its bytes of shared memory, and how many clusters of such blocks fit."""
    launch = variant.launch
    block = _dim3(launch.block, sizes)
    shared_bytes = evaluate(launch.shared_bytes, sizes)
    _check_cta(block, shared_bytes, variant)  # before a device is asked how many fit
    cta = Cta(threads=block.count, shared_bytes=shared_bytes, registers=variant.budget.registers)
    arch = variant.arch
    fits = fits or of_target(arch, int(sizes.get("sm_count", arch.multiprocessors)))
    return block, shared_bytes, partial(fits, cta)


def resolve(
    variant: Variant,
    sizes: Mapping[str, float],
    addresses: Mapping[str, int],
    fits: Fits | None = None,
) -> Plan:
    """The launch of one call.

    Args:
        variant: the kernel to run.
        sizes: the problem and the device, name → integer (`m`, `sm_count`, …), and the numbers of
            the call, name → float; those left out are their defaults.
        addresses: the device address in bytes of every argument; one that has no elements for
            these sizes is absent and may be left out: its pointer is null.
        fits: how many clusters run at once on the device; without it as many as on a GPU like the
            one that the target is made for.

    Raises:
        ProblemError: an argument is missing or misaligned, the launch exceeds a limit, or no
            cluster of it fits on the device.
        TensorMapError: a tensor map breaks a rule of the TMA unit.
        ExpressionError: an expression of the manifest cannot be evaluated for these sizes.

    """
    numbers = numbers_of(variant, sizes)
    sizes = {name: value for name, value in sizes.items() if name not in numbers}
    given = _addresses(variant, sizes, addresses)
    shape = shape_of(variant, sizes, fits)
    known = sizes, numbers
    arguments = (_argument(param, known, given, shape.fitting) for param in variant.params)
    plan = Plan(
        entry=variant.entry,
        grid=shape.grid,
        block=shape.block,
        cluster=shape.cluster,
        shared_bytes=shape.shared_bytes,
        arguments=tuple(arguments),
        programmatic=variant.launch.programmatic,
    )
    _check_limits(plan, variant.arch, variant.id)
    _check_fit(shape, variant.id)
    return plan


def numbers_of(variant: Variant, given: Mapping[str, float]) -> dict[str, float]:
    """The numbers of a call: as given, or their defaults.

    Raises:
        ProblemError: one is not a number, or neither given nor has a default; names it.

    """
    found = {}
    for known in variant.numbers:
        value = given.get(known.name)
        value = known.default if value is None else value
        if value is None:
            what = f"`{known.name}` is not given: {known.doc}"
            raise ProblemError(what, where=variant.kernel)
        found[known.name] = number(value, known.name)
    return found


def check_somewhere(
    variant: Variant, sizes: Mapping[str, float], addresses: Mapping[str, int]
) -> None:
    """Refuse an argument of some elements that lies at no address.

    Raises:
        ProblemError: names it.

    """
    for argument in variant.arguments:
        if not addresses.get(argument.name) and not is_absent(argument, sizes):
            what = "0x0 is not an address of device memory"
            raise ProblemError(what, where=f"`{argument.name}`")


def _dim3(
    exprs: tuple[Expr, Expr, Expr], sizes: Mapping[str, float], fitting: Fitting | None = None
) -> Dim3:
    x, y, z = (evaluate(expr, sizes, fitting) for expr in exprs)
    return Dim3(x, y, z)


def _argument(
    param: Param,
    known: tuple[Mapping[str, float], Mapping[str, float]],
    addresses: Mapping[str, int],
    fitting: Fitting,
) -> PlanArgument:
    """A parameter's value in one launch, whose sizes and numbers are known."""
    sizes, numbers = known
    match param:
        case PointerParam(argument=name):
            return Pointer(addresses[name])
        case ScalarParam(name=name, dtype=dtype, value=value):
            integer = evaluate(value, sizes, fitting)
            _check_scalar(name, dtype, integer)
            return Scalar(dtype, integer)
        case NumberParam(name=name, dtype=dtype, number=wanted):
            return Scalar(dtype, rounded(numbers[wanted], dtype, name))
        case MapParam(map=spec):
            return tensormap.resolve(spec, sizes, addresses[spec.argument])


def _addresses(
    variant: Variant, sizes: Mapping[str, float], addresses: Mapping[str, int]
) -> dict[str, int]:
    """The address of every argument, each checked; 0 of one that is absent and left out."""
    known = [argument.name for argument in variant.arguments]
    for name in addresses:
        if name not in known:
            hint = f"arguments: {', '.join(known)}"
            raise ProblemError(f"no argument `{name}`", where=variant.kernel, hint=hint)
        if not hasattr(addresses[name], "__index__"):
            what = f"must be a device address, not a {type(addresses[name]).__name__}"
            raise ProblemError(what, where=f"`{name}`", hint="an op takes arrays; this does not")
    found = {}
    for argument in variant.arguments:
        name = argument.name
        if name not in addresses and not is_absent(argument, sizes):
            hint = f"needs: {', '.join(known)}"
            raise ProblemError(f"no address for argument `{name}`", hint=hint)
        found[name] = address = addresses.get(name, 0)
        if address % argument.align_bytes:
            rule = f"must be aligned to {argument.align_bytes} bytes, not {address:#x}"
            raise ProblemError(rule, where=f"{variant.kernel}: `{name}`")
    return found


def is_absent(argument: Argument, sizes: Mapping[str, float]) -> bool:
    """Whether a call has no elements of an argument; one whose shape has no value has some."""
    return any(_is_nothing(side, sizes) for side in argument.shape)


def bytes_of(variant: Variant, sizes: Mapping[str, float]) -> dict[str, int]:
    """The bytes of each argument that a call has elements of, by name."""
    present = (a for a in variant.arguments if not is_absent(a, sizes))
    return {
        a.name: a.dtype.bytes_of(prod(evaluate(side, sizes) for side in a.shape)) for a in present
    }


def _is_nothing(side: Expr, sizes: Mapping[str, float]) -> bool:
    try:
        return evaluate(side, sizes) <= 0
    except ExpressionError:
        return False


def _check_scalar(name: str, dtype: DType, value: int) -> None:
    if value not in dtype.integers:
        raise ProblemError(f"{value} does not fit in {dtype.label}", where=f"parameter `{name}`")


def _check_cta(block: Dim3, shared_bytes: int, variant: Variant) -> None:
    limits = variant.arch.limits
    threads = "threads of a block", block.count, limits.threads
    _check_bounds([*_along("block", block, limits.block), threads], variant.id)
    if not 0 <= shared_bytes <= limits.shared_bytes:
        rule = f"shared memory must be at most {limits.shared_bytes} bytes, not {shared_bytes}"
        raise ProblemError(rule, where=variant.id)


def _check_limits(plan: Plan, arch: Arch, where: str) -> None:
    limits = arch.limits
    grid, cluster = (
        _along("grid", plan.grid, limits.grid),
        _along("cluster", plan.cluster, (limits.cluster,) * 3),
    )
    blocks = "blocks of a cluster", plan.cluster.count, limits.cluster
    _check_bounds([*grid, *cluster, blocks], where)
    for side, ctas in zip(plan.grid, plan.cluster, strict=True):
        if side % ctas:
            rule = f"the grid must be whole clusters: {plan.grid} by {plan.cluster}"
            raise ProblemError(rule, where=where)


def _check_bounds(bounds: Iterable[tuple[str, int, int]], where: str) -> None:
    for what, value, most in bounds:
        if not 1 <= value <= most:
            raise ProblemError(f"{what} must be 1 to {most}, not {value}", where=where)


def _check_fit(shape: Shape, where: str) -> None:
    """Refuse a cluster that would wait for ever: no GPC of the device has room for it."""
    ctas = shape.cluster.count
    if ctas > 1 and shape.fitting(ctas) == 0:
        each = f"{shape.block.count} threads and {shape.shared_bytes} bytes of shared memory each"
        raise ProblemError(
            f"no cluster of {ctas} CTAs, of {each}, fits on the device",
            where=where,
            hint="a MIG slice or a green context may have too few multiprocessors of one GPC",
        )


def _along(what: str, sides: Dim3, most: tuple[int, ...]) -> Iterator[tuple[str, int, int]]:
    for axis, side, bound in zip("xyz", sides, most, strict=True):
        yield f"{what}.{axis}", side, bound
