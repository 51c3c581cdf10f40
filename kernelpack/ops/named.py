"""Any kernel of a bundle as an op: `library.call("rms_norm", x=x, w=w, eps=1e-6)`.

What an op must say of a kernel the bundle says: the arrays it takes, their types and shapes, what
is written, which sizes and numbers there are. So every slip is named. What a manifest cannot say,
such as that indices are in range, an op of its own says beside: `@op(Named(kernel=...))`.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from kernelpack.ops.arrays import Array
from kernelpack.ops.bound import Bound, Either, Sized
from kernelpack.ops.emulated import EmulatedLibrary, emulated, is_for_emulator, loaded
from kernelpack.ops.given import Given
from kernelpack.ops.operation import Operation, Request, Said, T, Views
from kernelpack.ops.own import Own, P
from kernelpack.ops.prepared import Prepared, Started
from kernelpack.ops.repeat import repeated
from kernelpack.spec.select import check_asked


class Named(Own[P]):
    """An op that says what it takes by its kernel's name: the manifest says the rest.

    The `problem` of its requests is the sizes that no array says; an older bundle may know fewer.
    """

    def start(self, request: Request[Said, T]) -> Started:
        """Launch, or compute on the emulator; what was started."""
        operation, full = self._on(_library(request), request)
        return operation.start(full)

    def prepare(self, request: Request[Said, T]) -> Prepared:
        """Choose, resolve and pack a launch without starting it."""
        operation, full = self._on(loaded(request.library), request)
        return operation.prepare(full)

    def emulation(self, request: Request[Said, T]) -> Callable[[], Array]:
        """Check a call of numpy arrays; what is returned computes it, and gives its outputs."""
        operation, full = self._on(emulated(request.library), request)
        return operation.emulation(full)

    def located_on_host(self, request: Request[Said, T]) -> Views:
        """Numpy arrays as the kernel is to see them."""
        operation, full = self._on(emulated(request.library), request)
        return operation.located_on_host(full)

    def _on(
        self, library: Either, request: Request[Said, T]
    ) -> tuple[Operation[Sized[P]], Request[Sized[P], T]]:
        bound = self.bound(library)
        return bound.operation, bound.request(request, library)

    def bound(self, library: Either) -> Bound[P]:
        """The op of a library."""
        known = _BOUND.setdefault(library, {})
        if self not in known:
            known[self] = Bound(self, library)
        return known[self]


_BOUND: WeakKeyDictionary[Either, dict[Own[Any], Bound[Any]]] = WeakKeyDictionary()


def _library(request: Request[Any, Any]) -> Either:
    """The kernels that a call is for."""
    arrays = tuple(array for array in request.inputs.values() if array is not None)
    if is_for_emulator(arrays, request.library):
        return emulated(request.library)
    return loaded(request.library)


def call(library: Either, kernel: str, given: Mapping[str, Any]) -> Array:
    """Launch a kernel, or compute it on the emulator; see `Library.call`."""
    whole = partial(_start, library, kernel, given)
    if not isinstance(kernel, str) or not _OF_OPS.isdisjoint(given):
        return whole().out
    return repeated(kernel, whole, (), {**given, "library": library})


_OF_OPS = frozenset({"library", "debug"})
"""Words of ops alone, which a call by name refuses."""


def _start(library: Either, kernel: str, given: Mapping[str, Any]) -> Started:
    """The whole way of a call."""
    named, request = _request(library, kernel, given)
    return named.start(request)


def prepare(
    library: Either, kernel: str, given: Mapping[str, Any]
) -> Prepared | Callable[..., Array]:
    """Choose, resolve and pack a launch without starting it; see `Library.prepare`."""
    named, request = _request(library, kernel, given)
    if isinstance(request.library, EmulatedLibrary):
        compute = named.emulation(request)
        return lambda _stream=0: compute()
    return named.prepare(request)


def _request(
    library: Either, kernel: str, given: Mapping[str, Any]
) -> tuple[Named[Any], Request[Said, Array]]:
    known = {name: value for name, value in given.items() if value is not None}
    stream = known.pop("stream", None)
    if any(isinstance(value, np.ndarray) for value in known.values()):
        library = emulated(library)
    check_asked(kernel, None, library.bundle.where)
    named = _of(kernel)
    face = named.bound(library).face
    words = Given(face, known)
    return named, Request(
        inputs={name: words.arrays.get(name) for name in face.inputs},
        outputs={name: words.arrays.get(name) for name in face.outputs},
        problem=lambda _views, _outs: words.said,
        stream=stream,
        library=library,
    )


@lru_cache(maxsize=256)
def _of(kernel: str) -> Named[Any]:
    """The op that says nothing beside the manifest."""
    return Named(kernel=kernel, takes_any_values=True)
