"""An op: described once; called, prepared, and registered with frameworks from that description.

    @op(Operation(kernel=..., inputs=..., outputs=..., made=..., check_values=...))
    def scale(x, *, out=None, stream=None, library=None, debug=False) -> Request[Problem, Array]:
        return Request(inputs={"x": x}, outputs={"y": out}, ...)

The function says which request a call is. Its signature is that of the call and of `prepare`, and
`frameworks` reads torch's schema from it. `Named` replaces `Operation` where the kernel's
manifest says what the op takes.
"""

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

from kernelpack.ops.arrays import Array
from kernelpack.ops.named import Named
from kernelpack.ops.operation import Operation, Request, T
from kernelpack.ops.prepared import Prepared, Started
from kernelpack.ops.repeat import repeated

A = ParamSpec("A")
D = TypeVar("D", bound=Callable[..., Request[Any, Any]])


class Op(Generic[A, T]):
    """The op. Call it, or `prepare` it once and launch it many times.

    Attributes:
        operation: what it takes, checks and makes.
        request: from the arguments of a call to the request.
        tensors: the same from what a framework has, where that is not what a call takes.

    """

    def __init__(
        self, operation: Operation[Any] | Named[Any], request: Callable[A, Request[Any, T]]
    ) -> None:
        update_wrapper(self, request)
        self.operation, self.request = operation, request
        self.tensors: Callable[..., Request[Any, T]] = request

    def __call__(self, *args: A.args, **given: A.kwargs) -> T:
        """Launch, or compute on the emulator; see the op's own description."""

        def whole() -> Started:
            return self.operation.start(self.request(*args, **given))

        out: T = repeated(self.request, whole, args, given)
        return out

    def prepare(self, *args: A.args, **given: A.kwargs) -> Prepared:
        """Choose, resolve and pack a launch without starting it; arguments as of the op."""
        return self.operation.prepare(self.request(*args, **given))

    def fill(self, *args: Array, **given: Array) -> T:
        """Launch, or compute on the emulator, with what a framework has."""
        out: T = repeated(self.tensors, partial(self.start, *args, **given), args, given)
        return out

    def start(self, *args: Array, **given: Array) -> Started:
        """`fill`, the whole way, whatever calls there were before."""
        return self.operation.start(self.tensors(*args, **given))

    def of_tensors(self, request: D) -> D:
        """Take this function for what frameworks call: all but numbers are tensors there."""
        self.tensors = request
        return request


def op(
    operation: Operation[Any] | Named[Any],
) -> Callable[[Callable[A, Request[Any, T]]], Op[A, T]]:
    """Make an op of the function that says which request a call is."""

    def make(request: Callable[A, Request[Any, T]]) -> Op[A, T]:
        return Op(operation, request)

    return make
