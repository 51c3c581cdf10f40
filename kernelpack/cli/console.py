"""How the command line speaks: data on stdout, talk on stderr, no colour needed to understand."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence

from kernelpack.errors import KernelpackError


def say(text: str) -> None:
    """Tell the person something; never data."""
    print(text, file=sys.stderr)


def fail(error: KernelpackError) -> None:
    """Print an error as `error: where: what`, its hint last."""
    say(f"error: {error}")


def print_json(value: object) -> None:
    """Print a value as JSON for programs."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print aligned columns; numbers to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    numeric = [all(isinstance(c, int | float) for c in column) for column in _columns(rows)]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    for line in (header, *cells):
        aligned = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, numeric or [False] * 99, strict=False)
        ]
        print("  ".join(aligned).rstrip())


def _columns(rows: Iterable[Sequence[object]]) -> list[tuple[object, ...]]:
    return list(zip(*rows, strict=True))


def print_facts(facts: Mapping[str, object]) -> None:
    """Print `name  value` lines."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        print(f"{name.ljust(width)}  {value}")


def size(count: int) -> str:
    """Bytes as people read them: `12.3 KB`, decimal units."""
    value = float(count)
    for unit in ("B", "KB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"
