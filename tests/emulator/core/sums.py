"""What a comparison of both engines came to, in all and by kind."""

from collections import Counter
from collections.abc import Sequence


def sums(lines: Sequence[dict], kinds: Sequence[str]) -> dict:
    """Of the lines of runs, of as many as there are kinds, each the kind of a run."""
    return {
        **_of(lines, len(kinds)),
        "counts": dict(sorted(Counter(map(_class, lines)).items())),
        "kinds": {
            kind: _of([line for line in lines if line["kind"] == kind], count)
            for kind, count in sorted(Counter(kinds).items())
        },
    }


def _of(lines: Sequence[dict], count: int) -> dict:
    return {
        "runs": count,
        "done": len(lines),
        "different": sum(bool(line["difference"]) for line in lines),
        "steps": sum(line.get("steps", 0) for line in lines),
        "events": sum(line.get("events", 0) for line in lines),
    }


def _class(line: dict) -> str:
    return "different" if line["difference"] else line.get("ended", "same")
