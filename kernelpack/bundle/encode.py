"""A variant as records of the format. `decode` is the way back; both follow `format`."""

from collections.abc import Sequence
from itertools import starmap

from kernelpack.bundle.format import (
    MAX_DEPTH,
    MAX_WORDS,
    WIDE,
    WORD,
    Kind,
)
from kernelpack.bundle.pool import List, Pool
from kernelpack.errors import BundleError
from kernelpack.spec.expr import ARITY, INT64, Expr, Op
from kernelpack.spec.params import (
    Argument,
    MapParam,
    NumberParam,
    Param,
    PointerParam,
    ScalarParam,
    Slot,
)
from kernelpack.spec.variant import Axis, Guard, LaunchSpec, Number, Size, Variant

INT32 = range(-(2**31), 2**31)


class Encoder:
    """Writes the variants of one kernel into a pool.

    Args:
        pool: where records go.
        names: the kernel's names in order: sizes of the problem, then of the device.

    """

    def __init__(self, pool: Pool, names: Sequence[str]) -> None:
        self._pool = pool
        self._names = {name: index for index, name in enumerate(names)}
        self._arguments: dict[str, int] = {}
        self._numbers: dict[str, int] = {}

    def variant(self, variant: Variant, slots: Sequence[Slot], kernel: int) -> int:
        """The ref of a variant's record.

        Raises:
            BundleError: something of it does not fit the format; names the variant.

        Args:
            variant: what to write.
            slots: where its cubin expects each parameter.
            kernel: the row of its kernel.

        """
        try:
            return self._variant(variant, slots, kernel)
        except BundleError as error:
            raise BundleError(error.what, where=variant.id, hint=error.hint) from None

    def _variant(self, variant: Variant, slots: Sequence[Slot], kernel: int) -> int:
        self._arguments = {argument.name: at for at, argument in enumerate(variant.arguments)}
        self._numbers = {number.name: at for at, number in enumerate(variant.numbers)}
        params = [
            self._param(param, slot) for param, slot in zip(variant.params, slots, strict=True)
        ]
        budget = variant.budget
        return self._pool.record(
            Kind.VARIANT,
            kernel,
            self._launch(variant.launch),
            self._expr(variant.cost),
            self._expr(variant.workspace_bytes),
            *self._pool.text(variant.template),
            *self._constants(variant.axes),
            *self._constants(variant.constants),
            *self._pool.list([self._argument(argument) for argument in variant.arguments]),
            *self._pool.list(params),
            *self._pool.list([self._guard(guard) for guard in variant.guards]),
            budget.registers,
            budget.shared_bytes,
            budget.tensor_memory_columns,
        )

    def _expr(self, expr: Expr) -> int:
        code = b"".join(starmap(self._word, expr.code))
        words = len(code) // WORD.size
        text, depth = self._pool.text(expr.text), _depth(expr)
        if words > MAX_WORDS or depth > MAX_DEPTH:
            what = f"`{expr}` is too long: {words} words, {depth} deep"
            raise BundleError(what, hint=f"at most {MAX_WORDS} words, {MAX_DEPTH} deep")
        return self._pool.record(Kind.EXPRESSION, *text, words, depth, tail=code)

    def _word(self, op: Op, operand: int | str) -> bytes:
        if op is Op.NAME:
            return WORD.pack(op, 0, 0, self._name(str(operand)))
        if op is Op.CONST and int(operand) not in INT32:
            return WORD.pack(op, 1, 0, 0) + WIDE.pack(int(operand))
        return WORD.pack(op, 0, 0, int(operand))

    def _name(self, name: str) -> int:
        if name not in self._names:
            known = ", ".join(self._names)
            raise BundleError(f"an expression names `{name}`, not a size", hint=f"sizes: {known}")
        return self._names[name]

    def _exprs(self, exprs: Sequence[Expr]) -> List:
        return self._pool.list([self._expr(expr) for expr in exprs])

    def _argument(self, argument: Argument) -> int:
        return self._pool.record(
            Kind.ARGUMENT,
            *self._pool.text(argument.name),
            argument.dtype,
            argument.access,
            argument.align_bytes,
            0,
            *self._exprs(argument.shape),
        )

    def _argument_number(self, name: str) -> int:
        if name not in self._arguments:
            known = ", ".join(self._arguments)
            what = f"a parameter names the argument `{name}`, which is not given"
            raise BundleError(what, hint=f"arguments: {known}")
        return self._arguments[name]

    def _param(self, param: Param, slot: Slot) -> int:
        head = (*self._pool.text(param.name), slot.offset, slot.size)
        match param:
            case PointerParam(argument=argument):
                return self._pool.record(Kind.POINTER, *head, self._argument_number(argument), 0)
            case ScalarParam(dtype=dtype, value=value):
                return self._pool.record(Kind.SCALAR, *head, dtype, self._expr(value))
            case NumberParam(dtype=dtype, number=number):
                return self._pool.record(Kind.NUMBER_PARAM, *head, dtype, self._numbers[number])
            case MapParam():
                return self._map(param, slot)

    def _map(self, param: MapParam, slot: Slot) -> int:
        spec = param.map
        return self._pool.record(
            Kind.MAP,
            *self._pool.text(param.name),
            *self._pool.text(spec.name),
            slot.offset,
            slot.size,
            self._argument_number(spec.argument),
            spec.element,
            spec.swizzle,
            spec.interleave,
            spec.fill,
            spec.promotion,
            self._expr(spec.offset_bytes),
            int(spec.gather4),
            *self._exprs(spec.dims),
            *self._exprs(spec.strides_bytes),
            *self._exprs(spec.box),
            *self._exprs(spec.element_strides),
        )

    def _guard(self, guard: Guard) -> int:
        reason = self._pool.text(guard.reason)
        return self._pool.record(Kind.GUARD, self._expr(guard.when), 0, *reason)

    def _launch(self, launch: LaunchSpec) -> int:
        sides = (*launch.grid, *launch.block, *launch.cluster)
        return self._pool.record(
            Kind.LAUNCH,
            int(launch.programmatic),
            self._expr(launch.shared_bytes),
            *(self._expr(side) for side in sides),
            0,
        )

    def _constants(self, axes: Sequence[Axis]) -> List:
        return self._pool.list([self._constant(name, value) for name, value in axes])

    def _constant(self, name: str, value: int | str) -> int:
        head = self._pool.text(name)
        if isinstance(value, str):
            offset, size = self._pool.text(value)
            data = offset.to_bytes(4, "little") + size.to_bytes(4, "little")
            return self._pool.record(Kind.CONSTANT, *head, 1, 0, data)
        if value not in INT64:
            raise BundleError(f"the constant `{name}` does not fit in 64 bits: {value}")
        return self._pool.record(Kind.CONSTANT, *head, 0, 0, WIDE.pack(value))


def encode_names(pool: Pool, sizes: Sequence[Size]) -> List:
    """The list of a kernel's names, each with what it means."""
    return pool.list(
        [pool.record(Kind.NAME, *pool.text(size.name), *pool.text(size.doc)) for size in sizes]
    )


def encode_numbers(pool: Pool, numbers: Sequence[Number]) -> List:
    """The list of a kernel's numbers."""
    return pool.list([_number(pool, number) for number in numbers])


def _number(pool: Pool, number: Number) -> int:
    head = (*pool.text(number.name), *pool.text(number.doc))
    has_default = number.default is not None
    return pool.record(Kind.NUMBER, *head, int(has_default), 0, number.default or 0.0)


def _depth(expr: Expr) -> int:
    """The most values that an expression holds at once."""
    depth = most = 0
    for op, _ in expr.code:
        depth += 1 - ARITY[op]
        most = max(most, depth)
    return most
