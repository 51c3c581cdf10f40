"""The table of seeded faults, docs/mutation.md: `python -m tests.mutation.table` writes it.

It says what tests/mutation states; `pytest -m mutation` shows that it is.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from kernelpack.emulator.faults import Level
from tests.mutation.fault import Fault, read_faults
from tests.mutation.subjects import SUBJECTS

PAGE = Path(__file__).parents[2] / "docs" / "mutation.md"
HEAD = """# Seeded faults

Each line is one fault, put into a kernel that is right: how the emulator notices it, and the first
schedule that shows it. The kernels without a fault are clean under every schedule, at every level.
Written by `python -m tests.mutation.table` from tests/mutation/faults; `pytest -m mutation` runs
them all, and `pytest tests/mutation` the few that are marked ⚡.
"""


def page() -> str:
    """The whole page."""
    faults = read_faults()
    groups = groupby(faults, key=lambda fault: fault.subject)
    sections = [line for name, group in groups for line in _section(name, list(group))]
    return "\n".join([HEAD, *_totals(faults), *_missed(faults), *sections]) + "\n"


def _totals(faults: list[Fault]) -> Iterator[str]:
    yield "| kernel | faults | caught by default | at strict | not caught |"
    yield "|---|---|---|---|---|"
    for name in SUBJECTS:
        yield _counts(name, [fault for fault in faults if fault.subject == name])
    yield _counts("all", faults)
    yield ""


def _counts(name: str, faults: list[Fault]) -> str:
    caught = [fault for fault in faults if fault.caught]
    default = sum(fault.level < Level.STRICT for fault in caught)
    share = f"{default} ({100 * default / max(len(faults), 1):.1f} %)"
    missed = len(faults) - len(caught)
    return f"| {name} | {len(faults)} | {share} | {len(caught) - default} | {missed} |"


def _missed(faults: list[Fault]) -> Iterator[str]:
    yield "## Not caught at the default level"
    yield ""
    yield "| kernel | fault | at strict | because |"
    yield "|---|---|---|---|"
    for fault in faults:
        if fault.because:
            yield f"| {fault.subject} | {fault.name} | {fault.caught or '—'} | {fault.because} |"
    yield ""


def _section(name: str, faults: list[Fault]) -> Iterator[str]:
    yield f"## {name}"
    yield ""
    yield f"{SUBJECTS[name].doc}"
    yield ""
    yield "| fault | in | caught as | level | schedule |"
    yield "|---|---|---|---|---|"
    yield from map(_line, faults)
    yield ""


def _line(fault: Fault) -> str:
    mark = " ⚡" if fault.fast else ""
    level = "strict" if fault.level == Level.STRICT else "default"
    how = (fault.caught, level, fault.schedule) if fault.caught else ("—", "—", "—")
    return f"| {fault.name}{mark} | {fault.file} | {' | '.join(how)} |"


if __name__ == "__main__":
    PAGE.write_text(page())
