"""Records of the format as a variant: `encode` backwards, for an index that may have been forged.

The result equals the original, every expression's text included. Things are read in
the order of the C++ loader (`detail/decode.hpp`), so both name the same mistake of several.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, TypeVar

from kernelpack.bundle.format import MAX_DEPTH, MAX_WORDS, WIDE, WORD, Kind
from kernelpack.bundle.pool import List, Text
from kernelpack.bundle.sections import Sections
from kernelpack.formats.dtype import DType
from kernelpack.spec.expr import ARITY, Expr, Op
from kernelpack.spec.number import REALS
from kernelpack.spec.params import (
    Access,
    Argument,
    MapParam,
    NumberParam,
    Param,
    PointerParam,
    ScalarParam,
    Slot,
)
from kernelpack.spec.tensormap import (
    Element,
    Fill,
    Interleave,
    Promotion,
    Swizzle,
    TensorMapSpec,
)
from kernelpack.spec.variant import Axis, Guard, LaunchSpec, Number

Value = TypeVar("Value")
Code = TypeVar("Code", bound=IntEnum)
OPS = frozenset(Op)


class Decoder:
    """Reads the records of one kernel's variants; what is written once is read once.

    Args:
        sections: the index.
        names: the kernel's names in order.
        numbers: its numbers in order.

    Raises:
        BundleError: from every method, where a record does not follow the format.

    """

    def __init__(
        self, sections: Sections, names: Sequence[str], numbers: Sequence[Number] = ()
    ) -> None:
        self._sections, self._names, self._numbers = sections, names, numbers
        self._exprs: dict[int, Expr] = {}
        self._lists: dict[tuple[object, List], tuple[Any, ...]] = {}
        self._params: dict[tuple[List, List], tuple[tuple[Param, Slot], ...]] = {}

    def expr(self, ref: int) -> Expr:
        """An expression."""
        if ref not in self._exprs:
            self._exprs[ref] = self._read_expr(ref)
        return self._exprs[ref]

    def _read_expr(self, ref: int) -> Expr:
        fields, tail = self._sections.record(ref, Kind.EXPRESSION)
        offset, size, words, depth = fields
        if words > MAX_WORDS or words * WORD.size > len(tail) or depth > MAX_DEPTH:
            self._sections.refuse(f"expression {ref}: {words} words, {depth} deep")
        code = self._read_code(ref, tail[: words * WORD.size])
        if not self._is_whole(code, depth):
            self._sections.refuse(f"expression {ref} does not leave one value within {depth}")
        return Expr(self._sections.text((offset, size)), code)

    def _read_code(self, ref: int, data: bytes) -> tuple[tuple[Op, int | str], ...]:
        code: list[tuple[Op, int | str]] = []
        words = iter(range(0, len(data), WORD.size))
        for at in words:
            op, wide, _, operand = WORD.unpack_from(data, at)
            if op not in OPS or wide > (op == Op.CONST):
                self._sections.refuse(f"expression {ref}: operation {op}, wide {wide}")
            if wide:
                operand = self._read_wide(ref, data, next(words, len(data)))
            code.append((Op(op), self._name(operand) if op == Op.NAME else operand))
        return tuple(code)

    def _read_wide(self, ref: int, data: bytes, at: int) -> int:
        if at == len(data):
            self._sections.refuse(f"expression {ref} ends within a constant")
        return int(WIDE.unpack_from(data, at)[0])

    def _name(self, number: int) -> str:
        if not 0 <= number < len(self._names):
            self._sections.refuse(f"an expression names size {number} of {len(self._names)}")
        return self._names[number]

    @staticmethod
    def _is_whole(code: tuple[tuple[Op, int | str], ...], depth: int) -> bool:
        """Whether code never takes more than it has, holds at most `depth`, and leaves one."""
        held = 0
        for op, _ in code:
            if held < ARITY[op]:
                return False
            held += 1 - ARITY[op]
            if held > depth:
                return False
        return held == 1

    def exprs(self, at: List) -> tuple[Expr, ...]:
        """A list of expressions."""
        return self._each(self.expr, at)

    def _each(self, read: Callable[[int], Value], at: List) -> tuple[Value, ...]:
        key = (read, at)
        if key not in self._lists:
            self._lists[key] = tuple(read(ref) for ref in self._sections.list(at))
        return self._lists[key]

    def arguments(self, at: List) -> tuple[Argument, ...]:
        """A list of arguments."""
        return self._each(self._argument, at)

    def _argument(self, ref: int) -> Argument:
        fields = self._sections.record(ref, Kind.ARGUMENT)[0]
        name, size, dtype, access, align_bytes, _, *shape = fields
        if not align_bytes:
            self._sections.refuse("an argument aligned to 0 bytes")
        return Argument(
            name=self._sections.text((name, size)),
            dtype=self._number(DType, dtype),
            shape=self.exprs((shape[0], shape[1])),
            access=self._number(Access, access),
            align_bytes=align_bytes,
        )

    def _number(self, kind: type[Code], value: int) -> Code:
        try:
            return kind(value)
        except ValueError:
            self._sections.refuse(f"{kind.__name__.lower()} {value} is not known")

    def params(self, at: List, arguments: List) -> tuple[tuple[Param, Slot], ...]:
        """A list of parameters that name arguments of a list, each with its place in the block."""
        key = (at, arguments)
        if key not in self._params:
            given = self.arguments(arguments)
            self._params[key] = tuple(self._param(ref, given) for ref in self._sections.list(at))
        return self._params[key]

    def _param(self, ref: int, arguments: Sequence[Argument]) -> tuple[Param, Slot]:
        match self._sections.kind(ref)[0]:
            case Kind.POINTER:
                fields = self._sections.record(ref, Kind.POINTER)[0]
                name, size, *slot, argument, _ = fields
                text = self._sections.text((name, size))
                param: Param = PointerParam(name=text, argument=self._named(arguments, argument))
            case Kind.SCALAR:
                fields = self._sections.record(ref, Kind.SCALAR)[0]
                name, size, *slot, dtype, value = fields
                text = self._sections.text((name, size))
                scalar = self._number(DType, dtype)
                if not scalar.is_integer:
                    self._sections.refuse(f"an integer parameter of {scalar.label}")
                param = ScalarParam(name=text, dtype=scalar, value=self.expr(value))
            case Kind.NUMBER_PARAM:
                fields = self._sections.record(ref, Kind.NUMBER_PARAM)[0]
                name, size, *slot, dtype, number = fields
                param = self._number_param((name, size), dtype, number)
            case _:
                return self._map(ref, arguments)
        return param, Slot(*slot)

    def _number_param(self, at: Text, dtype: int, number: int) -> NumberParam:
        text, real = self._sections.text(at), self._number(DType, dtype)
        if real not in REALS:
            self._sections.refuse(f"a parameter of {real.label}, which takes no number")
        if number >= len(self._numbers):
            self._sections.refuse(f"a parameter names number {number} of {len(self._numbers)}")
        return NumberParam(name=text, dtype=real, number=self._numbers[number].name)

    def _named(self, arguments: Sequence[Argument], number: int) -> str:
        if number >= len(arguments):
            self._sections.refuse(f"a parameter names argument {number} of {len(arguments)}")
        return arguments[number].name

    def _map(self, ref: int, arguments: Sequence[Argument]) -> tuple[MapParam, Slot]:
        fields = self._sections.record(ref, Kind.MAP)[0]
        name, map_name, slot, rest = fields[0:2], fields[2:4], fields[4:6], fields[6:]
        argument, element, swizzle, interleave, fill, promotion, offset_bytes, flags, *lists = rest
        text = self._sections.text((name[0], name[1]))
        spec = TensorMapSpec(
            name=self._sections.text((map_name[0], map_name[1])),
            element=self._number(Element, element),
            swizzle=self._number(Swizzle, swizzle),
            interleave=self._number(Interleave, interleave),
            fill=self._number(Fill, fill),
            promotion=self._number(Promotion, promotion),
            dims=self.exprs((lists[0], lists[1])),
            strides_bytes=self.exprs((lists[2], lists[3])),
            box=self.exprs((lists[4], lists[5])),
            element_strides=self.exprs((lists[6], lists[7])),
            offset_bytes=self.expr(offset_bytes),
            gather4=bool(flags & 1),
            argument=self._named(arguments, argument),
        )
        return MapParam(name=text, map=spec), Slot(*slot)

    def guards(self, at: List) -> tuple[Guard, ...]:
        """A list of guards."""
        return self._each(self._guard, at)

    def _guard(self, ref: int) -> Guard:
        when, _, reason, size = self._sections.record(ref, Kind.GUARD)[0]
        return Guard(when=self.expr(when), reason=self._sections.text((reason, size)))

    def constants(self, at: List) -> tuple[Axis, ...]:
        """A list of axes or constants."""
        return self._each(self._constant, at)

    def _constant(self, ref: int) -> Axis:
        fields = self._sections.record(ref, Kind.CONSTANT)[0]
        name, size, is_text, _, data = fields
        text = self._sections.text((name, size))
        if is_text:
            at = int.from_bytes(data[:4], "little"), int.from_bytes(data[4:], "little")
            return text, self._sections.text(at)
        return text, int.from_bytes(data, "little", signed=True)

    def launch(self, ref: int) -> LaunchSpec:
        """A launch."""
        flags, shared_bytes, *sides, _ = self._sections.record(ref, Kind.LAUNCH)[0]
        x = [self.expr(side) for side in sides]
        return LaunchSpec(
            grid=(x[0], x[1], x[2]),
            block=(x[3], x[4], x[5]),
            cluster=(x[6], x[7], x[8]),
            shared_bytes=self.expr(shared_bytes),
            programmatic=bool(flags & 1),
        )
