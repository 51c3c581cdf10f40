"""How the command line speaks: data on stdout, talk on stderr, no colour needed to understand."""

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from kernelpack.errors import KernelpackError


def say(text: str) -> None:
    """Tell the person something; never data. Where stderr cannot be written, nobody is told."""
    with suppress(OSError):
        print(text, file=sys.stderr)


def fail(error: KernelpackError) -> None:
    """Print an error as `error: where: what`, its hint last."""
    say(f"error: {error}")


def print_json(value: object) -> None:
    """Print a value as JSON for programs; in JSON's own escapes where stdout is not UTF-8."""
    is_narrow = sys.stdout.encoding.lower() != "utf-8"
    print(json.dumps(value, indent=2, ensure_ascii=is_narrow))


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print aligned columns; columns of numbers to the right."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(len(str(cell)) for cell in column) for column in columns]
    numeric = [all(isinstance(cell, int | float) for cell in column[1:]) for column in columns]
    for line in (header, *rows):
        cells = zip(map(str, line), widths, numeric, strict=True)
        aligned = (text.rjust(w) if right else text.ljust(w) for text, w, right in cells)
        print("  ".join(aligned).rstrip())


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
