"""Expressions with what they come to, for every language that runs them: expressions.json.

    python -m tests.cpp.vectors        writes the file anew

A vector is `text` (for messages), `code` (operation and operand, docs/reference/bundle.md),
`sizes` (by name), `gpcs`, and `value` or `error`. A GPC of so many multiprocessors holds as many
CTAs, and a cluster of at most 16 lies in one; without `gpcs` the device cannot be asked.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from kernelpack.errors import ExpressionError
from kernelpack.spec.expr import ARITY, Expr, Op, evaluate, parse

PATH = Path(__file__).with_name("expressions.json")
MOST, LEAST = 2**63 - 1, -(2**63)
EDGES = (LEAST, -(2**32), -7, -1, 0, 1, 2, 7, 2**62, MOST)
SIZES = {"m": 128, "k": 4096, "low": LEAST, "high": MOST, "zero": 0}
GPCS = (18, 18, 16, 8)
TEXTS = (
    "fitting_clusters(4) * 4",
    "fitting_ctas(m // 8)",
    "min(8, fitting_ctas(14))",
    "cdiv(m, 48) * 48 + k % 7",
    "m if m > k else k",
    "align_up(m + 1, 64) // 64",
    "pow2_floor(k - 1)",
    "most_parts(k, 16)",
    "most_parts(high, 2)",
    "most_parts(high, 3)",
    "most_parts(k, 17)",
    "align_down(k - 1, 48)",
    "align_down(low, 7)",
    "1 <= m < k == 4096",
    "not zero and high > low",
    "min(m, k, 3) + max(m, k, low)",
    "high + 1",
    "low - 1",
    "low // -1",
    "low % -1",
    "cdiv(low, -1)",
    "align_up(low, -1)",
    "align_up(high, 2)",
    "-low",
    "high * high",
    "m // zero",
    "pow2_floor(zero)",
    "unknown",
    "unknown + 1",
    "high if unknown else low",
    "k == 'bf16'",
)


def written() -> Iterator[dict[str, Any]]:
    """The texts above, and every operation on every pair of edges."""
    for text in TEXTS:
        yield vector(parse(text), SIZES)
        yield vector(parse(text), SIZES, GPCS)
    for op in Op:
        if ARITY[op] == 1:
            yield from (vector(of(op, a), {}, GPCS) for a in (*EDGES, 9, 16, 17, 30))
        if ARITY[op] == 2:
            yield from (vector(of(op, a, b), {}) for a in EDGES for b in EDGES)


def random(count: int, seed: int) -> list[dict[str, Any]]:
    """Deep expressions of every operation, over edges, small numbers and names."""
    chance = Random(seed)
    return [vector(Expr(f"e{n}", tuple(grown(chance, 5))), SIZES, GPCS) for n in range(count)]


def grown(chance: Random, depth: int) -> list[tuple[Op, int | str]]:
    """Postfix code of a random tree."""
    if depth == 0 or chance.random() < 0.2:
        leaf = chance.choice(["name", "edge", "small", "small"])
        if leaf == "name":
            return [(Op.NAME, chance.choice(list(SIZES)))]
        return [(Op.CONST, chance.choice(EDGES) if leaf == "edge" else chance.randint(-40, 40))]
    op = chance.choice([op for op in Op if ARITY[op]])
    operands = [grown(chance, depth - 1) for _ in range(ARITY[op])]
    return [*(word for operand in operands for word in operand), (op, 0)]


def of(op: Op, *operands: int) -> Expr:
    """One operation on constants."""
    code = (*((Op.CONST, operand) for operand in operands), (op, 0))
    return Expr(f"{op.name.lower()} of {', '.join(map(str, operands))}", code)


def fitting(ctas: int) -> int:
    """How many clusters fit in `GPCS`."""
    return sum(gpc // ctas for gpc in GPCS) if ctas <= 16 else 0


def vector(expr: Expr, sizes: dict[str, int], gpcs: Sequence[int] = ()) -> dict[str, Any]:
    """An expression, with what Python makes of it."""
    code = [[int(op), operand] for op, operand in expr.code]
    made = {"text": expr.text, "code": code, "sizes": sizes, "gpcs": list(gpcs)}
    try:
        return made | {"value": evaluate(expr, sizes, fitting if gpcs else None)}
    except ExpressionError as error:
        return made | {"error": str(error)}


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(made) for made in written())
    PATH.write_text(f"[\n{lines}\n]\n")
