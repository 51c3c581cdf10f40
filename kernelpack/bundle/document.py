"""An entry as one line of canonical JSON, for people: what the records say, in words.

Keys are sorted, there is no space, text is UTF-8. Programs read the records instead.
"""

import json
from collections.abc import Sequence
from typing import Any

from kernelpack.spec.artifact import Resources
from kernelpack.spec.expr import Expr
from kernelpack.spec.params import (
    Argument,
    MapParam,
    NumberParam,
    Param,
    PointerParam,
    ScalarParam,
    Slot,
)
from kernelpack.spec.variant import Variant


def document(variant: Variant, resources: Resources, digests: dict[str, str]) -> bytes:
    """The line of one entry, without its end.

    Args:
        variant: the kernel and how to launch it.
        resources: what its cubin says of itself.
        digests: of its image, PTX and source, lower-case hex.

    """
    value = {
        "id": variant.id,
        "symbol": variant.entry,
        "kernel": variant.kernel,
        "abi": variant.abi,
        "target": resources.target,
        "template": variant.template,
        "axes": dict(variant.axes),
        "constants": dict(variant.constants),
        "sizes": {size.name: size.doc for size in variant.sizes},
        **_numbers(variant),
        "arguments": [_argument(argument) for argument in variant.arguments],
        "params": [
            _param(param, slot) for param, slot in zip(variant.params, resources.slots, strict=True)
        ],
        "launch": {
            "grid": _texts(variant.launch.grid),
            "block": _texts(variant.launch.block),
            "cluster": _texts(variant.launch.cluster),
            "shared_bytes": str(variant.launch.shared_bytes),
            "programmatic": variant.launch.programmatic,
        },
        "guards": [{"when": str(g.when), "reason": g.reason} for g in variant.guards],
        "cost": str(variant.cost),
        "workspace_bytes": str(variant.workspace_bytes),
        "budget": {
            "registers": variant.budget.registers,
            "shared_bytes": variant.budget.shared_bytes,
            "tensor_memory_columns": variant.budget.tensor_memory_columns,
        },
        "resources": {
            "registers": resources.registers,
            "shared_bytes": resources.shared_bytes,
            "stack_bytes": resources.stack_bytes,
            "spill_bytes": resources.spill_bytes,
        },
        "digests": digests,
    }
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _texts(exprs: Sequence[Expr]) -> list[str]:
    return [str(expr) for expr in exprs]


def _numbers(variant: Variant) -> dict[str, Any]:
    """The numbers of a call, where there are some; JSON has no infinity, so a default is text."""
    numbers = {
        number.name: {"doc": number.doc}
        | ({} if number.default is None else {"default": repr(number.default)})
        for number in variant.numbers
    }
    return {"numbers": numbers} if numbers else {}


def _argument(argument: Argument) -> dict[str, Any]:
    return {
        "name": argument.name,
        "dtype": argument.dtype.label,
        "shape": _texts(argument.shape),
        "access": argument.access.name.lower(),
        "align_bytes": argument.align_bytes,
    }


def _param(param: Param, slot: Slot) -> dict[str, Any]:
    head = {"name": param.name, "offset": slot.offset, "bytes": slot.size}
    match param:
        case PointerParam(argument=argument):
            return head | {"pointer": argument}
        case ScalarParam(dtype=dtype, value=value):
            return head | {"scalar": dtype.label, "value": str(value)}
        case NumberParam(dtype=dtype, number=number):
            return head | {"scalar": dtype.label, "value": number}
        case MapParam(map=spec):
            return head | {
                "map": {
                    "over": spec.argument,
                    "element": spec.element.name.lower(),
                    "dims": _texts(spec.dims),
                    "strides_bytes": _texts(spec.strides_bytes),
                    "box": _texts(spec.box),
                    "element_strides": _texts(spec.element_strides),
                    "offset_bytes": str(spec.offset_bytes),
                    "swizzle": spec.swizzle.name.lower(),
                    "interleave": spec.interleave.name.lower(),
                    "fill": spec.fill.name.lower(),
                    "promotion": spec.promotion.name.lower(),
                    "gather4": spec.gather4,
                }
            }
