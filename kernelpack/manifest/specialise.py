"""A combination → a Variant: constants folded in, `derive` written out where it is named.

Only sizes of the problem and of the device remain in an expression, so that a bundle needs
neither the manifest nor the order of its definitions.
"""

from kernelpack.errors import ExpressionError, ManifestError, ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.manifest.combination import Combination
from kernelpack.manifest.partial import partial
from kernelpack.manifest.parts import (
    ArgumentPart,
    Claim,
    MapParamPart,
    MapPart,
    ParamPart,
    PointerParamPart,
    ScalarParamPart,
)
from kernelpack.manifest.reader import Location
from kernelpack.manifest.words import DTYPES, ELEMENTS
from kernelpack.spec.expr import Expr, inline
from kernelpack.spec.number import rounded
from kernelpack.spec.params import (
    Argument,
    MapParam,
    NumberParam,
    Param,
    PointerParam,
    ScalarParam,
)
from kernelpack.spec.tensormap import TensorMapSpec
from kernelpack.spec.variant import Budget, Guard, LaunchSpec, Number, Size, Variant

MAX_OPERATIONS = 4096
"""The most postfix operations of an expression, so that chained definitions cannot explode."""


def specialise(combination: Combination) -> Variant:
    """The variant of one combination.

    Raises:
        ManifestError: an expression has no value here, or is too long once written out.

    """
    return _Specialiser(combination).variant()


class _Specialiser:
    """Folds the expressions of one combination; says where, when one has no value."""

    def __init__(self, combination: Combination) -> None:
        self.combination = combination
        self.manifest = combination.manifest
        self.derived: dict[str, Expr] = {}
        for name, expr in self.manifest.derive.items():
            self.derived[name] = self._expr(expr, ("derive", name))

    def variant(self) -> Variant:
        manifest, arch = self.manifest, self.combination.arch
        return Variant(
            kernel=manifest.kernel,
            abi=manifest.manifest.abi,
            arch=arch,
            axes=self.combination.axes,
            constants=self.combination.constants,
            template=manifest.template,
            sizes=tuple(Size(name=name, doc=doc) for name, doc in manifest.sizes.items()),
            numbers=tuple(
                Number(name=name, doc=part.doc, default=part.default)
                for name, part in manifest.numbers.items()
            ),
            arguments=tuple(self._argument(*item) for item in manifest.arguments.items()),
            params=tuple(self._param(param, i) for i, param in enumerate(manifest.params)),
            launch=self._launch(),
            guards=tuple(self._guard(claim, i) for i, claim in enumerate(manifest.serves)),
            cost=self._expr(manifest.cost, ("cost",)),
            workspace_bytes=self._expr(manifest.workspace_bytes, ("workspace_bytes",)),
            budget=self._budget(),
        )

    def _expr(self, expr: Expr, at: Location) -> Expr:
        written_out = inline(expr, self.derived)
        if len(written_out.code) > MAX_OPERATIONS:
            what = f"is more than {MAX_OPERATIONS} operations long once `derive` is written out"
            raise ManifestError(what, where=self.manifest.at(*at))
        try:
            return partial(written_out, self.combination)
        except ExpressionError as error:
            what = f"has no value for {self.combination}: {error.what}"
            raise ManifestError(what, where=self.manifest.at(*at), hint=error.hint) from error

    def _exprs(self, exprs: tuple[Expr, ...], at: Location) -> tuple[Expr, ...]:
        return tuple(self._expr(expr, (*at, index)) for index, expr in enumerate(exprs))

    def _vector(self, exprs: tuple[Expr, Expr, Expr], at: Location) -> tuple[Expr, Expr, Expr]:
        x, y, z = self._exprs(exprs, at)
        return (x, y, z)

    def _number(self, expr: Expr, at: Location) -> int:
        value = self._expr(expr, at).constant
        assert value is not None, "names.check lets a budget name constants only"
        return value

    def _word(self, word: str) -> str:
        """A type's word: itself, or the value of the axis it names."""
        return str(dict(self.combination.axes).get(word, word))

    def _dtype(self, word: str) -> DType:
        return DTYPES[self._word(word)]

    def _argument(self, name: str, part: ArgumentPart) -> Argument:
        return Argument(
            name=name,
            dtype=self._dtype(part.dtype),
            shape=self._exprs(part.shape, ("arguments", name, "shape")),
            access=part.access,
            align_bytes=part.align,
        )

    def _param(self, param: ParamPart, index: int) -> Param:
        at = ("params", index)
        match param:
            case PointerParamPart(name=name, pointer=argument):
                return PointerParam(name=name, argument=argument)
            case ScalarParamPart(name=name, scalar=word, value=value):
                dtype = self._dtype(word)
                if not dtype.is_integer:
                    return self._number_param(name, dtype, value.text)
                return ScalarParam(name=name, dtype=dtype, value=self._expr(value, (*at, "value")))
            case MapParamPart(name=name, map=part):
                return MapParam(name=name, map=self._map(name, part, (*at, "map")))

    def _number_param(self, name: str, dtype: DType, number: str) -> NumberParam:
        """A parameter that takes a number, whose default it can hold."""
        default = self.manifest.numbers[number].default
        try:
            rounded(0.0 if default is None else default, dtype, name)
        except ProblemError as error:
            where = self.manifest.at("numbers", number, "default")
            raise ManifestError(f"{error.where}: {error.what}", where=where) from error
        return NumberParam(name=name, dtype=dtype, number=number)

    def _map(self, name: str, part: MapPart, at: Location) -> TensorMapSpec:
        return TensorMapSpec(
            name=name,
            argument=part.over,
            element=ELEMENTS[self._word(part.element)],
            dims=self._exprs(part.dims, (*at, "dims")),
            strides_bytes=self._exprs(part.strides_bytes, (*at, "strides_bytes")),
            box=self._exprs(part.box, (*at, "box")),
            element_strides=self._exprs(part.element_strides, (*at, "element_strides")),
            offset_bytes=self._expr(part.offset_bytes, (*at, "offset_bytes")),
            swizzle=part.swizzle,
            interleave=part.interleave,
            fill=part.fill,
            promotion=part.promotion,
            gather4=part.gather4,
        )

    def _launch(self) -> LaunchSpec:
        launch = self.manifest.launch
        return LaunchSpec(
            grid=self._vector(launch.grid, ("launch", "grid")),
            block=self._vector(launch.block, ("launch", "block")),
            cluster=self._vector(launch.cluster, ("launch", "cluster")),
            shared_bytes=self._expr(launch.shared_bytes, ("launch", "shared_bytes")),
            programmatic=launch.programmatic,
        )

    def _guard(self, claim: Claim, index: int) -> Guard:
        return Guard(when=self._expr(claim.when, ("serves", index, "when")), reason=claim.reason)

    def _budget(self) -> Budget:
        budget = self.manifest.budget
        return Budget(
            registers=self._number(budget.registers, ("budget", "registers")),
            shared_bytes=self._number(budget.shared_bytes, ("budget", "shared_bytes")),
            tensor_memory_columns=self._number(
                budget.tensor_memory_columns, ("budget", "tensor_memory_columns")
            ),
        )
