"""Variants as text, for golden files: every number and every expression's postfix code."""

from kernelpack.spec.expr import Expr, Op
from kernelpack.spec.params import MapParam, Param, PointerParam, ScalarParam
from kernelpack.spec.variant import Variant


def brief(variant: Variant) -> str:
    """A line: the id and the constants that are no axes."""
    axes = dict(variant.axes)
    constants = [f"{name}={value}" for name, value in variant.constants if name not in axes]
    return f"{variant.id}: {', '.join(constants)}"


def describe(variant: Variant) -> str:
    """Everything a variant says."""
    launch = variant.launch
    lines = [
        variant.id,
        f"  entry {variant.entry}, abi {variant.abi}, template {variant.template}",
        f"  constants {', '.join(f'{name}={value}' for name, value in variant.constants)}",
        *(
            f"  argument {a.name}: {a.dtype.label} [{_vector(a.shape)}] "
            f"{a.access.name.lower()}, aligned to {a.align_bytes}"
            for a in variant.arguments
        ),
        *(f"  parameter {_param(p)}" for p in variant.params),
        f"  grid [{_vector(launch.grid)}]",
        f"  block [{_vector(launch.block)}]",
        f"  cluster [{_vector(launch.cluster)}]",
        f"  shared bytes {_postfix(launch.shared_bytes)}; programmatic {launch.programmatic}",
        *(f"  serves {_postfix(guard.when)}: {guard.reason}" for guard in variant.guards),
        f"  cost {_postfix(variant.cost)}",
        f"  workspace bytes {_postfix(variant.workspace_bytes)}",
        f"  budget {variant.budget}",
    ]
    return "\n".join(lines)


def _param(param: Param) -> str:
    match param:
        case PointerParam():
            return f"{param.name}: pointer to {param.argument}"
        case ScalarParam():
            return f"{param.name}: {param.dtype.label} {_postfix(param.value)}"
        case MapParam(map=m):
            return (
                f"{param.name}: map over {m.argument} of {m.element.name}, "
                f"dims [{_vector(m.dims)}], strides [{_vector(m.strides_bytes)}], "
                f"box [{_vector(m.box)}], element strides [{_vector(m.element_strides)}], "
                f"offset {_postfix(m.offset_bytes)}, swizzle {m.swizzle.name}, "
                f"interleave {m.interleave.name}, fill {m.fill.name}, promotion {m.promotion.name}"
                f"{', gather4' if m.gather4 else ''}"
            )


def _vector(exprs: tuple[Expr, ...]) -> str:
    return "; ".join(map(_postfix, exprs))


def _postfix(expr: Expr) -> str:
    return " ".join(str(v) if op <= Op.NAME else op.name.lower() for op, v in expr.code)
