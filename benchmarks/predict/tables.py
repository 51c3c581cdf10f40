"""How docs/blackwell.md writes rows, times and names."""

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.predict.sums import Row


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def part(pairs: Mapping[str, int]) -> str:
    return percent(pairs["right"] / max(pairs["all"], 1)).lstrip("+")


def percent(part: float | None) -> str:
    """Hundredths, with the sign of what is below zero."""
    return "\N{EN DASH}" if part is None else f"{100 * part:.1f} %".replace("-", "\N{MINUS SIGN}")


def band(row: Row) -> str:
    return "\N{EN DASH}" if row["low"] is None else f"{time(row['low'])} to {time(row['high'])}"


def time(microseconds: float) -> str:
    return f"{microseconds:.1f}" if microseconds < 1000 else f"{microseconds:.0f}"


def short(name: str) -> str:
    """A point's name without the words of its command, which the table has no room for."""
    problem, _, words = name.partition("|")
    is_variant = words.split(" ")[0][:1].isalpha() and words.startswith(("learn", "thunder"))
    return f"{problem}, {words.split(' ')[_WORD[words[:5]]]}" if is_variant else problem


_WORD = {"learn": 1, "thund": 0}
"""Which word of a command tells the variants of one problem apart."""


def axes(row: Row) -> str:
    """The tile of a variant's id."""
    axes = row["name"].rpartition("[")[2].rstrip("]").split(",")
    return " ".join(axis.removeprefix("tile_") for axis in axes if "tile_" in axis)


def ranked(pairs: Mapping[str, int]) -> str:
    """How many pairs of how many; nothing where there are none."""
    return f"{pairs['right']} of {pairs['all']}" if pairs["all"] else "\N{EN DASH}"
