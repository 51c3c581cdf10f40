"""A warp's role, in a word: the source function of most of its instructions.

The compiler writes beside each instruction its line, the function of that line, and the line at
which that function was inlined (`.loc`, PTX ISA 9.1, 11.5.1). From line to line this leads up to
the kernel. The last function on the way that is in the kernel's own file names the role, as far
as the way is clear; a lambda counts as the function that holds it.
Names are as in the Itanium C++ ABI, 5.1.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from kernelpack.emulator.ptx.syntax import Location

_LOC = re.compile(
    r"^\s*\.loc\s+(\d+)\s+(\d+)\s+\d+"
    r"(?:\s*,\s*function_name\s+([^\s,]+)\s*,\s*inlined_at\s+(\d+)\s+(\d+)\s+\d+)?",
    re.MULTILINE,
)
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_STRING = re.compile(r"^(\$?\w+):\s*\n((?:\s*\.b8\s+[\d ,]+\n)+)", re.MULTILINE)
_DEPTH_LIMIT = 64

Line = tuple[str, int]
"""A file and a line of it."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A function, and where it was inlined."""

    function: str
    caller: Line


@dataclass(frozen=True, slots=True)
class Functions:
    """Which functions the lines of a PTX module belong to; empty without line information."""

    frames: dict[Line, frozenset[Frame]]
    file: str
    """The file of the kernel itself."""
    known: dict[tuple[Line, Line | None], str] = field(default_factory=dict, compare=False)
    """Roles found so far."""

    @classmethod
    def of(cls, ptx: str) -> "Functions":
        """Read a module's text."""
        files = dict(_FILE.findall(ptx))
        names = {label: demangle(_text(raw)) for label, raw in _STRING.findall(ptx)}
        frames: dict[Line, set[Frame]] = defaultdict(set)
        own: list[str] = []
        for number, line, label, outer, outer_line in _LOC.findall(ptx):
            file = files.get(number, number)
            if label:
                frame = Frame(names.get(label, label), (files.get(outer, outer), int(outer_line)))
                frames[file, int(line)].add(frame)
            else:
                own.append(file)
        kernel = own[0] if own else ""  # the first line is where the kernel begins
        return cls({line: frozenset(found) for line, found in frames.items()}, kernel)

    def role(self, location: Location | None) -> str:
        """The function of the kernel's file that an instruction is part of; "" for the kernel."""
        if location is None:
            return ""
        outer = location.inlined_at
        caller = (outer.file, outer.line) if outer else None
        return self._role((location.file, location.line), caller, _DEPTH_LIMIT)

    def _role(self, line: Line, caller: Line | None, depth: int) -> str:
        """The role of a line that was inlined at `caller`, or anywhere; each is found once."""
        key = line, caller
        if key not in self.known:
            self.known[key] = ""  # a circle ends here
            self.known[key] = self._found(line, caller, depth) if depth else ""
        return self.known[key]

    def _found(self, line: Line, caller: Line | None, depth: int) -> str:
        """The one role that all callers have; else the function of the line itself."""
        found = self.frames.get(line, frozenset())
        fitting = [frame for frame in found if caller in (None, frame.caller)]
        above = {self._role(frame.caller, None, depth - 1) for frame in fitting} - {""}
        if len(above) == 1:
            return above.pop()
        names = {frame.function for frame in fitting}
        return names.pop() if len(names) == 1 and line[0] == self.file else ""


def busiest(roles: Iterable[tuple[str, int]]) -> str:
    """Of (role, instructions), the role with most of them; "" where there is none."""
    counts: Counter[str] = Counter()
    for role, count in roles:
        if role:
            counts[role] += count
    return counts.most_common(1)[0][0] if counts else ""


def demangle(name: str) -> str:
    """The plain name of a mangled function, without its scope and its arguments.

    >>> demangle("_ZN2kp3ptx13mbarrier_waitEjj"), demangle("_ZZ4loadRKiENKUlvE_clEv")
    ('mbarrier_wait', 'load')
    """
    if not name.startswith("_Z"):
        return name
    rest = name[2:].lstrip("Z").lstrip("NLrVK")
    plain = name
    while length := re.match(r"\d+", rest):
        begin, size = length.end(), int(length[0])
        plain, rest = rest[begin : begin + size], rest[begin + size :].lstrip("L")
    return plain


def _text(raw: str) -> str:
    """The string that `.b8` directives spell, up to its final zero."""
    codes = [int(code) for code in re.findall(r"(?<!b)\d+", raw)]
    return bytes(codes).partition(b"\0")[0].decode("ascii", "replace")
