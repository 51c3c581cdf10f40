"""Both engines on a launch, or the core alone where what Python says of it is kept.

A run of the core that was the same as Python's is a digest of what the core said: its log, steps
and memory. A changed core that gives the same digest is the same as Python too, which need not run
again. Any change of the Python semantics, their comments aside, makes another key.
"""

import ast
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path

import numpy as np

import kernelpack
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.prepare import Dependent
from kernelpack.emulator.schedule import Schedule
from tests.emulator.core.compare import both, copied, digest, on_core, spoils

_ROOT = Path(kernelpack.__file__).parent
_SOURCES = ("emulator", "formats", "spec")
_NO_SEMANTICS = ("emulator/core", "emulator/call.py", "emulator/watch.py", "emulator/trace.py")
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Said:
    """`digest` is of a run of the core that was the same as Python's; empty where it doubted."""

    key: str
    is_clean: bool
    digest: str
    steps: int
    events: int


@dataclass(frozen=True)
class Launch:
    """A launch of a program, whose text is given."""

    text: str
    first: Dependent
    memory: GlobalMemory
    schedule: Schedule
    step_limit: int

    @property
    def key(self) -> str:
        """A name for all that decides what it does."""
        first, memory = self.first, self.memory
        given = first.plan, first.parameters, first.addresses, first.workspace, first.name
        told = blake2b(self.text.encode(), digest_size=16)
        words = semantics(), given, self.schedule, self.step_limit, memory.base, memory.allocations
        told.update(repr(words).encode())
        told.update(memory.bytes.tobytes())
        told.update(memory.state.tobytes())
        return told.hexdigest()


def judged(launch: Launch, kept: Mapping[str, Said]) -> dict:
    """What to write of a launch."""
    name = launch.key
    before = kept.get(name)
    if before and (said := _of_core(launch, before)):
        return said
    given = launch.first, launch.memory, launch.schedule, launch.step_limit
    return told_of_both(*given) | {"key": name}


def _of_core(launch: Launch, before: Said) -> dict:
    """Of the core, where what Python says is kept; empty where they may differ."""
    memory = copied(launch.memory)
    ran = on_core(launch.first, memory, launch.schedule, step_limit=launch.step_limit)
    doubt = ran if isinstance(ran, str) else ran.doubt
    if spoils(ran, memory, launch.first, launch.memory):
        return {}
    if doubt or before.digest == digest(ran, memory):
        return _told(before, doubt, "") | {"kept": True}
    return {}


def told_of_both(
    first: Dependent, memory: GlobalMemory, schedule: Schedule, step_limit: int
) -> dict:
    """What to write of a launch on both engines, event by event."""
    found = both(first, memory, schedule, step_limit)
    python = found.python
    is_clean = not (python.findings or python.error)
    is_same = is_clean and not found.doubt and not found.difference
    said = Said("", is_clean, found.digest if is_same else "", python.steps, found.events)
    is_doubted = is_clean and bool(found.doubt)  # which is no difference: the outcome is Python's
    return _told(said, found.doubt, found.spoilt if is_doubted else found.difference)


def _told(said: Said, doubt: str, difference: str) -> dict:
    """The line of a launch."""
    ended = f"same: {'clean' if said.is_clean else 'found'}"
    is_doubted = said.is_clean and bool(doubt)
    return asdict(said) | {
        "difference": difference,
        "ended": "doubted, so Python's" if is_doubted else ended,
        "doubt": doubt,
    }


@cache
def semantics() -> str:
    """A digest of the Python engine's code, numpy and the processor, which may round otherwise."""
    told = blake2b(repr((np.__version__, platform.machine())).encode(), digest_size=16)
    for path in sorted(path for name in _SOURCES for path in (_ROOT / name).rglob("*.py")):
        name = path.relative_to(_ROOT).as_posix()
        if not name.startswith(_NO_SEMANTICS):
            told.update(f"{name}\0{code_of(path.read_text(encoding='utf-8'))}\0".encode())
    return told.hexdigest()


def code_of(source: str) -> str:
    """What a module does, without its comments and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)
