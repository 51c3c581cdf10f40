"""Findings that are true and known: a file that says which, and why they are let pass.

[[finding]]
rule = "proxy-fence"              # a rule's name, or an error's: `deadlock`, `trap`, `problem`
kernel = "*gemm_device*"          # patterns of names, mangled or not; `*` where left out
place = "01_mma_sm100.cu:*"
text = "* reads shared memory *"      # of the finding
schedule = "starving:*"
reason = "no fence.proxy.async between the stores to shared memory and the MMA"
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from kernelpack.emulate.names import matches
from kernelpack.emulate.report import Trouble, kind_of
from kernelpack.emulator import rules
from kernelpack.errors import KernelpackError
from kernelpack.spec.nearest import nearest

_KEYS = ("rule", "kernel", "place", "text", "schedule", "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Which findings are expected, by patterns, and why."""

    rule: str
    reason: str
    kernel: str = "*"
    place: str = "*"
    text: str = "*"
    schedule: str = "*"

    def covers(self, trouble: Trouble, schedule: str) -> bool:
        """Whether a trouble under a schedule is one of these."""
        return (
            trouble.rule == self.rule
            and matches(trouble.kernel, self.kernel)
            and fnmatchcase(trouble.place, self.place)
            and fnmatchcase(trouble.text, self.text)
            and fnmatchcase(schedule, self.schedule)
        )


def load(path: Path) -> tuple[Expectation, ...]:
    """Read a file of expected findings.

    Raises:
        KernelpackError: it is not TOML, or an entry has an unknown key, lacks one, or is not
            a text; or it names an unknown rule.

    """
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KernelpackError(f"not TOML: {error}", where=str(path)) from error
    entries = told.pop("finding", [])
    if told or not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise KernelpackError(
            "not a list of findings", where=str(path), hint="each begins with [[finding]]"
        )
    return tuple(_expectation(entry, path) for entry in entries)


def _expectation(entry: Mapping[str, object], path: Path) -> Expectation:
    if not {"rule", "reason"} <= entry.keys() <= set(_KEYS):
        raise KernelpackError(
            f"an expected finding with the keys {', '.join(entry)}",
            where=str(path),
            hint=f"`rule` and `reason` must be there; keys: {', '.join(_KEYS)}",
        )
    texts = {key: value for key, value in entry.items() if isinstance(value, str)}
    for key in entry.keys() - texts.keys():
        raise KernelpackError(
            f"`{key}` is {entry[key]!r}", where=str(path), hint="each value is a text"
        )
    known = {*rules.names(), *_kinds(KernelpackError)}
    if texts["rule"] not in known:
        raise KernelpackError(
            f"no rule `{texts['rule'][:60]}`",
            where=str(path),
            hint=nearest(texts["rule"], sorted(known)) or "rules: kernelpack emulate --rules",
        )
    return Expectation(**texts)


def _kinds(error: type[KernelpackError]) -> Iterator[str]:
    """The names of errors among findings: `deadlock`, `trap`, `problem` and others."""
    yield kind_of(error)
    for child in error.__subclasses__():
        yield from _kinds(child)


def judge(trouble: Trouble, expectations: Iterable[Expectation], schedule: str) -> Trouble:
    """The trouble, with the reason for which it is expected, if it is."""
    for expectation in expectations:
        if expectation.covers(trouble, schedule):
            return replace(trouble, expected=expectation.reason)
    return trouble
