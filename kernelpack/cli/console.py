"""How the command line speaks: data on stdout, talk on stderr, no colour needed to understand.

Texts of a bundle may be anybody's: what would move a terminal's cursor is shown, not sent, and a
line that somebody else's text begins comes to the right of ours.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from kernelpack.errors import KernelpackError

_BEYOND_C0 = r"\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
_CONTROL = re.compile(rf"[\x00-\x1f{_BEYOND_C0}]")
"""Characters that a terminal obeys: C0, DEL, C1, line separators, changes of direction."""


class Complaint(Protocol):
    """An error or a finding; its text ends with its hint, where it has one."""

    @property
    def hint(self) -> str:
        """What would be right."""


def visible(text: str) -> str:
    """A text on one line in which control characters are shown as escapes."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def show(data: object) -> None:
    """Print data that people read, on lines of its own."""
    print(_hanging(str(data)))


def say(text: str) -> None:
    """Write a message for a person; never data. Drop it where stderr cannot be written."""
    with suppress(OSError):
        print(_hanging(text), file=sys.stderr)


def told(complaint: Complaint) -> list[str]:
    """Its message, then its hint: texts to print one after the other."""
    hint = f"hint: {complaint.hint}"
    text = str(complaint).removesuffix(f"\n{hint}")
    return [text, hint] if complaint.hint else [text]


def _hanging(text: str) -> str:
    """A text whose later lines are indented, so that none of them looks like a line of ours."""
    first, *rest = map(visible, text.split("\n"))
    return "\n".join([first, *(line if line.startswith("  ") else f"  {line}" for line in rest)])


@dataclass
class Asked:
    """How a command line wants to be answered: by JSON, where `--json` is among its words."""

    json: bool = False


def fail(error: KernelpackError) -> None:
    """Print an error as `error: where: what`, its hint last."""
    head, *hint = told(error)
    for text in (f"error: {head}", *hint):
        say(text)


def print_error(error: KernelpackError) -> None:
    """Print an error as JSON for programs."""
    print_json({"error": {"where": error.where, "what": error.what, "hint": error.hint}})


def exit_code(lost: Sequence[KernelpackError]) -> int:
    """Print what was lost, if anything was; the exit code."""
    for error in lost:
        fail(error)
    return 1 if lost else 0


def print_json(value: object) -> None:
    """Print a value as JSON for programs; in JSON's own escapes where stdout is not UTF-8.

    JSON escapes C0 alone; other control characters are escaped as it would.
    """
    is_narrow = sys.stdout.encoding.lower() != "utf-8"
    text = json.dumps(value, indent=2, ensure_ascii=is_narrow)
    print(re.sub(f"[{_BEYOND_C0}]", lambda found: f"\\u{ord(found[0]):04x}", text))


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
