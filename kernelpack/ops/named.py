"""Any kernel of a bundle as an op: `library.call("rms_norm", x=x, w=w, eps=1e-6)`.

What the built-in ops say of theirs, a bundle says of every kernel: the arrays it takes, their types
and shapes, what is written, which sizes and numbers there are. So every slip is named as they name
it. What a manifest cannot say, such as that indices are in range, nothing here checks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from kernelpack.errors import ProblemError
from kernelpack.load.library import Library
from kernelpack.ops.arrays import Array, DeviceArray
from kernelpack.ops.checks import require
from kernelpack.ops.emulated import EmulatedLibrary, emulated
from kernelpack.ops.face import WORKSPACE, Face, alike
from kernelpack.ops.given import Given
from kernelpack.ops.inference import Inference
from kernelpack.ops.operation import Made, Operation, Read, Request, Views
from kernelpack.ops.prepared import Prepared
from kernelpack.spec.expr import evaluate
from kernelpack.spec.launch import is_absent, numbers_of
from kernelpack.spec.params import Access, Argument
from kernelpack.spec.select import check_asked
from kernelpack.spec.variant import Variant

Named = Mapping[str, Any]
"""What a caller gives, by the manifest's names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedProblem:
    """The sizes and numbers of a call, and the outputs that it has."""

    sizes: Mapping[str, float]
    made: Mapping[str, Made]
    is_empty: bool


def call(library: Library | EmulatedLibrary, kernel: str, given: Named) -> Array:
    """Launch a kernel, or compute it on the emulator; see `Library.call`."""
    operation, request = _request(library, kernel, given)
    return operation.run(request)


def prepare(
    library: Library | EmulatedLibrary, kernel: str, given: Named
) -> Prepared | Callable[..., Array]:
    """Choose, resolve and pack a launch without starting it; see `Library.prepare`."""
    operation, request = _request(library, kernel, given)
    if isinstance(request.library, EmulatedLibrary):
        compute = operation.emulation(request)
        return lambda _stream=0: compute()
    return operation.prepare(request)


def _request(
    library: Library | EmulatedLibrary, kernel: str, given: Named
) -> tuple[Operation[NamedProblem], Request[NamedProblem, Array]]:
    known = {name: value for name, value in given.items() if value is not None}
    stream = known.pop("stream", None)
    arrays = [value for value in known.values() if isinstance(value, np.ndarray)]
    if arrays and not isinstance(library, EmulatedLibrary):
        library = emulated(library)
    face = _face(library, kernel)
    words = Given(face, known)
    operation: Operation[NamedProblem] = Operation(
        kernel=kernel,
        abis=face.abis,
        inputs=face.inputs,
        outputs=face.outputs,
        optional=frozenset(face.arguments),
        made=lambda problem: problem.made,
        check_values=_check_values,
        takes_any_values=True,
        in_place=face.unreturned,
    )
    return operation, Request(
        inputs={name: words.arrays.get(name) for name in face.inputs},
        outputs={name: words.arrays.get(name) for name in face.outputs},
        problem=lambda views, outs: _problem(library, face, words, {**views, **outs}),
        stream=stream,
        library=library,
    )


def _check_values(_problem: NamedProblem, _read: Read) -> None:
    """A manifest does not say which values a kernel relies on."""


_FACES: WeakKeyDictionary[Library | EmulatedLibrary, dict[str, Face]] = WeakKeyDictionary()


def _face(library: Library | EmulatedLibrary, kernel: str) -> Face:
    """What a kernel of a library takes: of its highest ABI."""
    check_asked(kernel, None, library.bundle.where)
    faces = _FACES.setdefault(library, {})
    if kernel not in faces:
        variants = library.variants(kernel)
        newest = max(variant.abi for variant in variants)
        faces[kernel] = Face(tuple(v for v in variants if v.abi == newest))
    return faces[kernel]


def _problem(
    library: Library | EmulatedLibrary, face: Face, words: Given, views: Views
) -> NamedProblem:
    """The problem of a call whose arrays have the ranks and types of the kernel's."""
    key = (
        tuple((name, a.dtype, a.shape, a.device) for name, a in views.items()),
        tuple(words.put.items()),
    )
    variant, problem = face.remembered(key, lambda: _inferred(library, face, words, views))
    sizes = {**problem.sizes, **numbers_of(variant, words.numbers)}
    return replace(problem, sizes=sizes)


def _inferred(
    library: Library | EmulatedLibrary, face: Face, words: Given, views: Views
) -> tuple[Variant, NamedProblem]:
    """The variant and the problem of a call, without its numbers."""
    device = next((a.device for a in views.values() if a.device is not None), 0)
    variants, device_sizes = library.running(face.variants, device)
    sizes = {**words.sizes, **device_sizes}
    known = Inference(face=face, variants=variants, sizes=sizes, given=words.put)
    known.read(views)
    variant = known.variants[0]
    is_empty = all(is_absent(a, sizes) for a in _written(variant) if a.name != WORKSPACE)
    wanted = {name: sizes[name] for name in face.sizes}
    if not is_empty:
        variant = _chosen(library, face, wanted, device)
        _check_chosen(variant, known)
    for argument in variant.arguments:
        _check_given(argument, views, known, face)
    present = (a for a in _written(variant) if is_empty or not is_absent(a, sizes))
    made = {a.name: _made(a, views, known) for a in present}
    return variant, NamedProblem(sizes=wanted, made=made, is_empty=is_empty)


def _written(variant: Variant) -> list[Argument]:
    return [a for a in variant.arguments if a.access is not Access.READ]


def _chosen(
    library: Library | EmulatedLibrary, face: Face, sizes: Mapping[str, int], device: int
) -> Variant:
    if isinstance(library, EmulatedLibrary):
        return library.select(face.kernel, sizes, face.abis)
    return library.select(face.kernel, sizes, device, face.abis)


def _check_chosen(variant: Variant, known: Inference) -> None:
    """The variant that the sizes choose takes the arrays; if not, no guard tells them apart."""
    if variant.id not in {each.id for each in known.variants}:
        what = f"the sizes choose {variant.id}, which does not take these arrays"
        hint = "`serves` of its manifest must compare a size with their types, as `dtype == DTYPE`"
        raise ProblemError(what, where=variant.kernel, hint=hint)


def _check_given(argument: Argument, views: Views, known: Inference, face: Face) -> None:
    """An array that the kernel reads must be there."""
    name = argument.name
    is_there = argument.access is Access.WRITE or name in views
    shape = f"{face.shape(name)} of {argument.dtype.label}"
    rule = f"`{name}` must be given: {shape}"
    require(is_there or is_absent(argument, known.sizes), rule, face.kernel)


def _made(argument: Argument, views: Views, known: Inference) -> Made:
    """An output as the problem makes it, of the type of the one that was given."""
    shape = tuple(max(0, evaluate(side, known.sizes)) for side in argument.shape)
    given = views.get(argument.name)
    is_alike = isinstance(given, DeviceArray) and alike(given.dtype, argument.dtype)
    return Made(shape=shape, dtype=given.dtype if given and is_alike else argument.dtype)
