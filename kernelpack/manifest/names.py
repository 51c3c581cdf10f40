"""The rules of a manifest that need the whole of it: who may name what, what must agree.

Constants are UPPER_CASE (the target's, axes, `let`) and known when a kernel is built; the rest is
lower_case (sizes, the device's, `derive`, numbers) and known when it is called. Expressions are of
integers, so a number is named by parameters alone.
"""

import ast
import keyword
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kernelpack.errors import ManifestError
from kernelpack.manifest.blocks import check_blocks
from kernelpack.manifest.family import FamilyManifest, of_family
from kernelpack.manifest.model import Manifest
from kernelpack.manifest.parts import Claim, MapParamPart, PointerParamPart, ScalarParamPart
from kernelpack.manifest.reader import Location
from kernelpack.manifest.words import DTYPES, ELEMENTS, TARGETS
from kernelpack.spec.expr import ASKING, FUNCTIONS, Expr
from kernelpack.spec.nearest import nearest
from kernelpack.spec.number import REALS
from kernelpack.spec.variant import DEVICE_SIZES

TARGET_CONSTANTS = ("ARCH", "LIMIT_SHARED", "LIMIT_REGISTERS")
"""Constants of every target: its name, and a block's most shared memory in bytes and registers."""
REAL_TYPES = {dtype.label: dtype for dtype in REALS}
INTEGER_TYPES = {label: dtype for label, dtype in DTYPES.items() if dtype.is_integer}
"""The types of what that are passed by value."""
TEMPLATE_CONSTANTS = ("FAMILY",)
"""Those that templates alone see: a manifest says in a block what a family has of its own."""


@dataclass(frozen=True, slots=True)
class Use:
    """An expression, where it is, and the names it may use."""

    location: Location
    expr: Expr
    known: tuple[str, ...]


def check(manifest: Manifest) -> None:
    """Check a manifest against every rule that needs the whole of it; ManifestError otherwise."""
    check_blocks(manifest)
    _check_axes(manifest)
    for family in manifest.families:
        _check_family(of_family(manifest, family))
    _check_numbers(manifest)


def _check_family(manifest: FamilyManifest) -> None:
    _check_definitions(manifest)
    _check_constants_are_integers(manifest)
    for use in uses(manifest):
        _check_use(manifest, use)
    _check_types(manifest)
    _check_params(manifest)
    _check_axes_are_used(manifest)
    _check_derived_are_used(manifest)
    _check_who_asks(manifest)


def uses(manifest: FamilyManifest) -> Iterator[Use]:
    """Every expression of a family's manifest, in the order of its keys."""
    constants = (*TARGET_CONSTANTS, *manifest.axes, *manifest.let)
    sizes = (*constants, *manifest.sizes, *DEVICE_SIZES)
    everything = (*sizes, *manifest.derive)
    yield from _claims("where", manifest.where, constants)
    yield from _definitions("let", manifest.let, constants)
    yield from _definitions("derive", manifest.derive, everything)
    for location, expr in _run_time(manifest):
        yield Use(location, expr, everything)
    yield from _claims("serves", manifest.serves, everything)
    for key in ("registers", "shared_bytes", "tensor_memory_columns"):
        yield Use(("budget", key), getattr(manifest.budget, key), constants)


def _claims(key: str, claims: Iterable[Claim], known: tuple[str, ...]) -> Iterator[Use]:
    for index, claim in enumerate(claims):
        yield Use((key, index, "when"), claim.when, known)


def _definitions(key: str, named: Mapping[str, Expr], known: tuple[str, ...]) -> Iterator[Use]:
    """Each may use every other; a circle of several was refused before."""
    for name, expr in named.items():
        yield Use((key, name), expr, tuple(other for other in known if other != name))


def _run_time(manifest: FamilyManifest) -> Iterator[tuple[Location, Expr]]:
    for name, argument in manifest.arguments.items():
        yield from _vector(("arguments", name, "shape"), argument.shape)
    for index, param in enumerate(manifest.params):
        match param:
            case ScalarParamPart(value=value) if not _is_real(manifest, param):
                yield ("params", index, "value"), value
            case MapParamPart(map=part):
                at = ("params", index, "map")
                for key in ("dims", "strides_bytes", "box", "element_strides"):
                    yield from _vector((*at, key), getattr(part, key))
                yield (*at, "offset_bytes"), part.offset_bytes
    for key in ("grid", "block", "cluster"):
        yield from _vector(("launch", key), getattr(manifest.launch, key))
    yield ("launch", "shared_bytes"), manifest.launch.shared_bytes
    yield ("cost",), manifest.cost
    yield ("workspace_bytes",), manifest.workspace_bytes


def _is_real(manifest: FamilyManifest, param: ScalarParamPart) -> bool:
    """Whether a parameter takes a number: its type, or one of its axis of types, is of floats."""
    words = manifest.axes.get(param.scalar, (param.scalar,))
    return any(word not in INTEGER_TYPES for word in words)


def _vector(at: Location, exprs: tuple[Expr, ...]) -> Iterator[tuple[Location, Expr]]:
    for index, expr in enumerate(exprs):
        yield (*at, index), expr


def _error(
    manifest: Manifest | FamilyManifest,
    at: Location,
    what: str,
    hint: str = "",
    *,
    key: bool = False,
) -> ManifestError:
    return ManifestError(what, where=manifest.at(*at, key=key), hint=hint)


def _check_definitions(manifest: FamilyManifest) -> None:
    """One name, one meaning."""
    taken = dict.fromkeys(
        (*TARGET_CONSTANTS, *TEMPLATE_CONSTANTS, *DEVICE_SIZES),
        "is given by the target or the device",
    )
    taken |= dict.fromkeys(FUNCTIONS, "is a function")
    for key in ("sizes", "numbers", "axes", "let", "derive"):
        for name in getattr(manifest, key):
            if keyword.iskeyword(name):
                raise _error(manifest, (key, name), f"`{name}` is a word of expressions", key=True)
            if name in taken:
                raise _error(manifest, (key, name), f"`{name}` {taken[name]}", key=True)
            taken[name] = f"is already defined under `{key}`"


def _check_constants_are_integers(manifest: FamilyManifest) -> None:
    """A word made by `let` would reach a template as its number."""
    for name, expr in manifest.let.items():
        if _is_word(ast.parse(expr.text, mode="eval").body):
            what = f"`{name}` is a word, but a constant must be an integer"
            raise _error(manifest, ("let", name), what, "let the template compare the axis")


def _is_word(node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp):
        return _is_word(node.body) or _is_word(node.orelse)
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _check_axes(manifest: Manifest) -> None:
    for name, values in manifest.axes.items():
        if len({type(value) for value in values}) > 1:
            raise _error(manifest, ("axes", name), f"axis `{name}` mixes integers and words")
        for index, value in enumerate(values):
            if value in values[:index]:
                raise _error(manifest, ("axes", name, index), f"`{value}` is given twice")


def _check_numbers(manifest: Manifest) -> None:
    """A number reaches the kernel, and is not an argument's: a call gives both by name."""
    scalars = [param for param in manifest.params if isinstance(param, ScalarParamPart)]
    for name in manifest.numbers:
        if name in manifest.arguments:
            what = f"`{name}` is an argument too"
            raise _error(manifest, ("numbers", name), what, "rename one of the two", key=True)
        if all(param.value.text != name for param in scalars):
            what, hint = f"number `{name}` reaches no parameter", "pass it or remove it"
            raise _error(manifest, ("numbers", name), what, hint, key=True)


def _check_use(manifest: FamilyManifest, use: Use) -> None:
    unknown = sorted(use.expr.names - set(use.known))
    if unknown:
        raise _unknown(manifest, use, unknown[0])
    known = {str(value) for values in manifest.axes.values() for value in values}
    for word in _quoted(use.expr):
        if word not in known | DTYPES.keys() | TARGETS.keys():
            what = f"no axis has the value '{word}' in `{use.expr}`"
            raise _error(manifest, use.location, what, nearest(word, known))


def _unknown(manifest: FamilyManifest, use: Use, name: str) -> ManifestError:
    if name in manifest.numbers:
        what = f"`{name}` is a number of the call, and `{use.expr}` is of integers"
        hint = f"only the `value` of a parameter of {_either(REAL_TYPES)} names it"
        return _error(manifest, use.location, what, hint)
    blocks = manifest.manifest.families
    others = [f for f, block in blocks.items() if name in {**block.let, **block.derive}]
    if others and manifest.family not in others:
        what = f"`{use.expr}` needs `{name}`, which {manifest.family} does not have"
        hint = f"define it under `for: {manifest.family}` too, or move this under `for`"
        return _error(manifest, use.location, what, hint)
    hint = nearest(name, use.known) or f"names known here: {', '.join(use.known)}"
    return _error(manifest, use.location, f"unknown name `{name}` in `{use.expr}`", hint)


def _quoted(expr: Expr) -> Iterator[str]:
    """The quoted words of an expression as it was written."""
    for node in ast.walk(ast.parse(expr.text, mode="eval")):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _check_types(manifest: FamilyManifest) -> None:
    for name, argument in manifest.arguments.items():
        _check_type(manifest, ("arguments", name, "dtype"), argument.dtype, DTYPES)
    for index, param in enumerate(manifest.params):
        match param:
            case ScalarParamPart():
                _check_scalar(manifest, index, param)
            case MapParamPart(map=part):
                at = ("params", index, "map", "element")
                _check_type(manifest, at, part.element, ELEMENTS)


def _check_scalar(manifest: FamilyManifest, index: int, param: ScalarParamPart) -> None:
    """A type of integers goes with an expression, another one with the name of a number."""
    at, known = ("params", index), manifest.numbers
    _check_type(manifest, (*at, "scalar"), param.scalar, INTEGER_TYPES | REAL_TYPES)
    if not _is_real(manifest, param):
        return
    _check_type(manifest, (*at, "scalar"), param.scalar, REAL_TYPES)
    if param.value.text not in known:
        what = f"`{param.value}` is not a number of the call, and a parameter of floats takes one"
        numbers = f"numbers: {', '.join(known)}" if known else "name it under `numbers`"
        hint = nearest(param.value.text, known) or numbers
        raise _error(manifest, (*at, "value"), what, hint)


def _either(words: Iterable[str]) -> str:
    *some, last = words
    return f"{', '.join(some)} or {last}"


def _check_type(
    manifest: FamilyManifest, at: Location, word: str, types: Mapping[str, object]
) -> None:
    """A type is named itself, or by an axis whose values all name one."""
    for value in manifest.axes.get(word, (word,)):
        if value not in types:
            known = (*types, *manifest.axes)
            hint = nearest(str(value), known) or f"types: {', '.join(types)}"
            raise _error(manifest, at, f"`{value}` is not a type that fits here", hint)


def _check_params(manifest: FamilyManifest) -> None:
    seen: set[str] = set()
    used: set[str] = set()
    for index, param in enumerate(manifest.params):
        at = ("params", index)
        if param.name in seen:
            raise _error(manifest, (*at, "name"), f"parameter `{param.name}` is given twice")
        seen.add(param.name)
        match param:
            case PointerParamPart(pointer=name):
                used.add(_argument(manifest, (*at, "pointer"), name))
            case MapParamPart():
                used.add(_argument(manifest, (*at, "map", "over"), param.map.over))
                _check_ranks(manifest, (*at, "map"), param)
    for name in manifest.arguments:
        if name not in used:
            what = f"argument `{name}` reaches no parameter"
            raise _error(manifest, ("arguments", name), what, "pass it or remove it", key=True)


def _argument(manifest: FamilyManifest, at: Location, name: str) -> str:
    if name not in manifest.arguments:
        hint = nearest(name, manifest.arguments) or f"arguments: {', '.join(manifest.arguments)}"
        raise _error(manifest, at, f"unknown argument `{name}`", hint)
    return name


def _check_ranks(manifest: FamilyManifest, at: Location, param: MapParamPart) -> None:
    part, rank = param.map, len(param.map.dims)
    wanted = {"strides_bytes": rank - 1, "box": rank, "element_strides": rank}
    for key, count in wanted.items():
        given = len(getattr(part, key))
        if given != count and not (key == "element_strides" and given == 0):
            what = f"`{key}` has {given} entries, but `dims` has {rank}"
            raise _error(manifest, (*at, key), what, f"give {count}")


def _check_axes_are_used(manifest: FamilyManifest) -> None:
    """An axis that nothing names would make variants between which no problem can choose."""
    named = {name for use in uses(manifest) for name in use.expr.names}
    named |= {argument.dtype for argument in manifest.arguments.values()}
    named |= {param.map.element for param in manifest.params if isinstance(param, MapParamPart)}
    named |= {param.scalar for param in manifest.params if isinstance(param, ScalarParamPart)}
    for name, values in manifest.axes.items():
        if name not in named and len(values) > 1:
            what = f"axis `{name}` is never used: its {len(values)} values make no difference"
            hint = "name it in `where`, `let`, `serves`, `cost` or a type, or remove it"
            raise _error(manifest, ("axes", name), what, hint, key=True)


def _check_derived_are_used(manifest: FamilyManifest) -> None:
    """A derived name is for the manifest alone, so that one which nothing names is a slip."""
    named = {name for use in uses(manifest) for name in use.expr.names}
    for name in manifest.derive:
        if name not in named:
            what = f"`{name}` is derived but never used"
            raise _error(manifest, ("derive", name), what, "use it or remove it", key=True)


def _check_who_asks(manifest: FamilyManifest) -> None:
    """How many clusters fit is known of a kernel that is loaded, so a choice cannot depend on it.

    Nor can what the answer depends on: a block, and its shared memory.
    """
    through: dict[str, str] = {}
    for name, expr in manifest.derive.items():
        if asked := _asks(expr, through):
            through[name] = asked
    for use in uses(manifest):
        asked = _asks(use.expr, through)
        if asked and not _may_ask(use.location):
            what = f"`{use.expr}` depends on `{asked}`, which is known once a kernel is loaded"
            hint = "only `launch.grid`, `launch.cluster` and scalar parameters may depend on it"
            raise _error(manifest, use.location, what, hint)


def _asks(expr: Expr, through: Mapping[str, str]) -> str:
    """The function by which an expression asks the device, itself or through what it names."""
    used = {op for op, _ in expr.code} & ASKING
    called = [name for name, op in FUNCTIONS.items() if op in used]
    named = [through[name] for name in sorted(expr.names) if name in through]
    return next(iter([*called, *named]), "")


def _may_ask(location: Location) -> bool:
    match location:
        case ("derive", *_) | ("launch", "grid" | "cluster", *_) | ("params", _, "value"):
            return True
    return False
