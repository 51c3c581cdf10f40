"""How the command line speaks: data on stdout, talk on stderr, no colour needed to understand.

Texts of a bundle may be anybody's: what would move a terminal's cursor is shown, not sent.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kernelpack.errors import KernelpackError

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What a terminal obeys: C0, DEL, C1, separators of lines, and turns of the direction."""


def visible(text: str) -> str:
    """A text on one line in which control characters are shown as escapes."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def show(data: object) -> None:
    """Print data that people read, on lines of its own."""
    print(_visible_lines(str(data)))


def say(text: str) -> None:
    """Tell the person something; never data. Where stderr cannot be written, nobody is told."""
    with suppress(OSError):
        print(_visible_lines(text), file=sys.stderr)


def _visible_lines(text: str) -> str:
    return "\n".join(map(visible, text.split("\n")))


@dataclass
class Asked:
    """How a command line wants to be answered: by JSON, where `--json` is among its words."""

    json: bool = False


def fail(error: KernelpackError) -> None:
    """Print an error as `error: where: what`, its hint last."""
    say(f"error: {error}")


def print_error(error: KernelpackError) -> None:
    """Print an error as JSON for programs."""
    print_json({"error": {"where": error.where, "what": error.what, "hint": error.hint}})


def print_json(value: object) -> None:
    """Print a value as JSON for programs; in JSON's own escapes where stdout is not UTF-8."""
    is_narrow = sys.stdout.encoding.lower() != "utf-8"
    print(json.dumps(value, indent=2, ensure_ascii=is_narrow))


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print aligned columns; columns of numbers to the right."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(len(visible(str(cell))) for cell in column) for column in columns]
    numeric = [all(isinstance(cell, int | float) for cell in column[1:]) for column in columns]
    for line in (header, *rows):
        cells = zip((visible(str(cell)) for cell in line), widths, numeric, strict=True)
        aligned = (text.rjust(w) if right else text.ljust(w) for text, w, right in cells)
        print("  ".join(aligned).rstrip())


def print_facts(facts: Mapping[str, object]) -> None:
    """Print `name  value` lines."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        print(f"{name.ljust(width)}  {visible(str(value))}")


def size(count: int) -> str:
    """Bytes as people read them: `12.3 KB`, decimal units."""
    value = float(count)
    for unit in ("B", "KB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"
