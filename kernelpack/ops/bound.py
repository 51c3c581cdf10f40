"""A kernel's manifest as the operation of an op: forms, sizes and outputs of one library's bundle.

    arrays → sizes they say → the op's own problem → sides checked against sizes → variant → outputs

A call is remembered by the forms of its arrays and its given sizes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic

from kernelpack.errors import BundleError, ProblemError
from kernelpack.load.library import Library
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.ops.face import WORKSPACE, Face, alike
from kernelpack.ops.inference import Inference
from kernelpack.ops.operation import Form, Made, Operation, Request, Said, T, Views
from kernelpack.ops.own import Own, P
from kernelpack.spec.expr import evaluate
from kernelpack.spec.launch import is_absent, numbers_of
from kernelpack.spec.params import Access, Argument
from kernelpack.spec.select import check_asked, of_abi
from kernelpack.spec.variant import Variant

Either = Library | EmulatedLibrary

_REMEMBERED = 4096  # problems of a kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized(Generic[P]):
    """The sizes and numbers of a call, the outputs that it has, and the op's own problem."""

    sizes: Mapping[str, float]
    made: Mapping[str, Made]
    is_empty: bool
    own: P


class Bound(Generic[P]):
    """An op of one library.

    Attributes:
        face: what the library's kernel takes.
        operation: what the op takes, checks and makes there.

    Raises:
        BundleError: the library has the kernel in other ABIs only.

    """

    def __init__(self, own: Own[P], library: Either) -> None:
        self.own, self.face = own, face_of(library, own.kernel, own.abis)
        self._remembered: dict[object, tuple[Variant, Sized[P]]] = {}
        self.operation: Operation[Sized[P]] = Operation(
            kernel=own.kernel,
            abis=self.face.abis,
            inputs=self._forms(self.face.inputs),
            outputs=self._forms(self.face.outputs),
            keywords=own.outputs,
            optional=frozenset(self.face.arguments),
            made=lambda problem: problem.made,
            check_values=lambda problem, read: own.check_values(problem.own, read),
            takes_any_values=own.takes_any_values,
            cleared=own.cleared,
            in_place=self.face.unreturned,
        )

    def _forms(self, known: Mapping[str, Form]) -> dict[str, Form]:
        types = self.own.types
        return {n: Form(dims=f.dims, dtypes=types.get(n, f.dtypes)) for n, f in known.items()}

    def request(self, asked: Request[Any, T], library: Either) -> Request[Sized[P], T]:
        """A call with its problem completed by what the manifest says.

        Raises:
            BundleError: the manifest has other arrays than the op gives.

        """

        def problem(views: Views, outs: Views) -> Sized[P]:
            return self.problem(library, asked.problem(views, outs), views, outs)

        found, given = {*self.face.arguments}, {*asked.inputs, *asked.outputs}
        if found != given:
            what = f"`{self.own.kernel}` takes {', '.join(sorted(found))} here"
            raise BundleError(f"{what}, this version gives {', '.join(sorted(given))}")
        return Request(
            inputs=asked.inputs,
            outputs=asked.outputs,
            problem=problem,
            located=asked.located,
            stream=asked.stream,
            library=library,
            debug=asked.debug,
        )

    def problem(self, library: Either, said: Said, views: Views, outs: Views) -> Sized[P]:
        """The problem of a call whose arrays have the ranks and types of the kernel's."""
        sizes = {name: value for name, value in said.items() if name in self.face.sizes}
        everything = {**views, **outs}
        arrays = tuple((n, a.dtype, a.shape, a.device) for n, a in everything.items())
        key = arrays, tuple(sizes.items())
        found = self._remembered.get(key)
        if found is None:
            found = self._inferred(library, sizes, everything)
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = found
        variant, problem = found
        if not self.face.numbers:
            return problem
        numbers = numbers_of(variant, {n: said[n] for n in self.face.numbers if n in said})
        return replace(problem, sizes={**problem.sizes, **numbers})

    def _inferred(
        self, library: Either, said: Mapping[str, int], views: Views
    ) -> tuple[Variant, Sized[P]]:
        """The variant and the problem of a call, without its numbers."""
        device = next((a.device for a in views.values() if a.device is not None), 0)
        known = self._known(library, said, device)
        known.read(views)
        sizes = {name: known.sizes[name] for name in self.face.sizes}
        own = self.own.problem(sizes)
        known.check(views)
        variant = known.kinds[0].variant
        is_empty = own.is_empty or _has_no_output(variant, known.sizes)
        if not is_empty:
            variant = _chosen(library, self.face, sizes, device)
            _check_chosen(variant, known)
        for argument in variant.arguments:
            _check_given(argument, views, known)
        made = _made(variant, views, known.sizes, is_empty=is_empty)
        return variant, Sized(sizes=sizes, made=made, is_empty=is_empty, own=own)

    def _known(self, library: Either, said: Mapping[str, int], device: int) -> Inference:
        kinds = self.face.kinds
        running, sizes = library.running((kind.variant for kind in kinds), device)
        archs = {variant.arch for variant in running}
        return Inference(
            face=self.face,
            kinds=tuple(kind for kind in kinds if kind.variant.arch in archs),
            sizes={**said, **sizes},
            given=said,
            word=self.own.word,
        )


def face_of(library: Either, kernel: str, abis: range | None) -> Face:
    """A library's kernel as callers see it: of the highest ABI that a caller can call.

    Raises:
        SelectionError: the library has no such kernel.
        BundleError: it has it in other ABIs only.

    """
    where = library.bundle.where
    check_asked(kernel, abis, where)
    variants = of_abi(library.variants(kernel), kernel, abis, where)
    newest = max(variant.abi for variant in variants)
    return Face(tuple(v for v in variants if v.abi == newest))


def _written(variant: Variant) -> list[Argument]:
    return [a for a in variant.arguments if a.access is not Access.READ]


def _has_no_output(variant: Variant, sizes: Mapping[str, int]) -> bool:
    return all(is_absent(a, sizes) for a in _written(variant) if a.name != WORKSPACE)


def _chosen(library: Either, face: Face, sizes: Mapping[str, int], device: int) -> Variant:
    if isinstance(library, EmulatedLibrary):
        return library.select(face.kernel, sizes, face.abis)
    return library.select(face.kernel, sizes, device, face.abis)


def _check_chosen(variant: Variant, known: Inference) -> None:
    """The variant that the sizes choose takes the arrays; if not, no guard separates them."""
    if not any(variant.id in kind.ids for kind in known.kinds):
        what = f"the sizes choose {variant.id}, which does not take these arrays"
        hint = "`serves` of its manifest must compare a size with their types, as `dtype == DTYPE`"
        raise ProblemError(what, where=variant.kernel, hint=hint)


def _check_given(argument: Argument, views: Views, known: Inference) -> None:
    """An array that the kernel reads must be there."""
    name, face = argument.name, known.face
    is_there = argument.access is Access.WRITE or name in views
    if not is_there and not is_absent(argument, known.sizes):
        rule = f"`{name}` must be given: {face.shape(name)} of {argument.dtype.label}"
        raise ProblemError(rule, where=face.kernel)


def _made(
    variant: Variant, views: Views, sizes: Mapping[str, int], *, is_empty: bool
) -> dict[str, Made]:
    """The outputs as the problem makes them, of the types of those that were given."""
    made = {}
    for argument in _written(variant):
        if is_empty or not is_absent(argument, sizes):
            shape = tuple(max(0, evaluate(side, sizes)) for side in argument.shape)
            given = views.get(argument.name)
            stands = given is not None and alike(given.dtype, argument.dtype)
            dtype = given.dtype if given and stands else argument.dtype
            made[argument.name] = Made(shape=shape, dtype=dtype)
    return made
