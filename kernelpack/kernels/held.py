"""Check an oracle against a kernel: arrays and outputs must be those of its manifest.

So a slip of an oracle is reported as one, never as a fault of the kernel. Its cases are `cases`'.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.errors import OracleError
from kernelpack.kernels.definition import Arrays, Definition, Expected
from kernelpack.spec.expr import evaluate
from kernelpack.spec.launch import is_absent
from kernelpack.spec.nearest import nearest
from kernelpack.spec.params import Access, Argument
from kernelpack.spec.variant import Variant

Sizes = Mapping[str, float]


def check_inputs(definition: Definition, arrays: Arrays, variant: Variant, sizes: Sizes) -> None:
    """Refuse input arrays that are not the kernel's.

    Raises:
        OracleError: one is missing, or of another name, type or shape than the manifest's.

    """
    if not definition.origin:
        return
    arguments = {argument.name: argument for argument in variant.arguments}
    for name, array in arrays.items():
        if name not in arguments:
            hint = nearest(name, arguments) or f"its arguments: {', '.join(arguments)}"
            raise _slip(definition, f"`inputs` gives `{name}`, which is not an argument", hint)
        _check_array(definition, arguments[name], array, sizes)
    for argument in arguments.values():
        is_read = argument.access is not Access.WRITE and not is_absent(argument, sizes)
        if is_read and argument.name not in arrays:
            known = f"it gives {', '.join(arrays) or 'none'}"
            raise _slip(definition, f"`inputs` gives no `{argument.name}`", known)


def check_expected(
    definition: Definition, found: Mapping[str, Expected], variant: Variant, sizes: Sizes
) -> None:
    """Refuse what is not expected of the kernel's outputs.

    Raises:
        OracleError: an output is missing, one is not of the kernel, or is of another shape; or a
            bound is no number.

    """
    if not definition.origin:
        return
    written = [a for a in variant.arguments if a.access is not Access.READ]
    outputs = {a.name: a for a in written if not is_absent(a, sizes)}
    for name, output in found.items():
        if name not in outputs:
            hint = nearest(name, outputs) or f"its outputs: {', '.join(outputs)}"
            raise _slip(definition, f"`expected` gives `{name}`, which is not an output", hint)
        for each in (output, *output.elsewhere.values()):
            _check_expected(definition, outputs[name], each, sizes)
    for name in outputs:
        if name not in found:
            known = f"it gives {', '.join(found) or 'none'}"
            raise _slip(definition, f"`expected` gives no `{name}`, which the kernel writes", known)


def _check_array(
    definition: Definition, argument: Argument, array: NDArray[Any], sizes: Sizes
) -> None:
    """The type and shape of an input."""
    wanted, shape = argument.dtype.numpy, _shape(argument, sizes)
    if array.dtype != wanted:
        what = f"`inputs` gives `{argument.name}` as {array.dtype}"
        raise _slip(definition, what, f"the manifest says {argument.dtype.label}: {wanted}")
    is_whole = argument.dtype.bits >= 8  # smaller elements are packed
    if is_whole and array.shape != shape:
        what = f"`inputs` gives `{argument.name}` of shape {list(array.shape)}"
        raise _slip(definition, what, f"the manifest says {list(shape)}")


def _check_expected(
    definition: Definition, argument: Argument, output: Expected, sizes: Sizes
) -> None:
    """The type and shape of an output, and that its bound is one."""
    shape, name = _shape(argument, sizes), argument.name
    if output.dtype not in (None, argument.dtype):
        what = f"`expected` gives `{name}` within ulps of {output.dtype.label}"
        hint = f"the manifest says {argument.dtype.label}; for more room give more ulps, or `least`"
        raise _slip(definition, what, hint)
    for part, found in (("value", output.value), ("bound", output.bound)):
        if np.shape(found) != shape:
            what = f"`expected` gives the {part} of `{name}` of shape {list(np.shape(found))}"
            raise _slip(definition, what, f"the manifest says {list(shape)}")
    _check_bound(definition, name, np.asarray(output.value), np.asarray(output.bound))


def _check_bound(
    definition: Definition, name: str, value: NDArray[Any], bound: NDArray[Any]
) -> None:
    """A bound is at least 0; a NaN must be met or left, whatever its bound."""
    is_one = (bound >= 0) & (bound < np.inf)  # nor is NaN a bound
    wrong = ~is_one & np.isfinite(value) | ~(bound >= 0) & np.isinf(value)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        what = f"the bound of `{name}{list(at)}` is {bound[at]:g}"
        hint = "a bound is how far an element may be from its value: a number from 0"
        raise _slip(definition, what, hint)


def _shape(argument: Argument, sizes: Sizes) -> tuple[int, ...]:
    return tuple(evaluate(side, sizes) for side in argument.shape)


def _slip(definition: Definition, what: str, hint: str) -> OracleError:
    return OracleError(what, where=definition.origin, hint=hint)
