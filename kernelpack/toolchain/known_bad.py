"""Known mistakes of compilers, looked for in every cubin.

The table is `known_bad.toml`. An instruction of these targets is 16 bytes, so a pattern of bits is
matched exactly, instruction by instruction; a test checks each against a real mistake. Where a
release is in no range, nothing is read.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from kernelpack.errors import ToolchainError
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Cubin
from kernelpack.toolchain.elf import code_of, entries_of
from kernelpack.toolchain.toolchain import Toolchain

INSTRUCTION_BYTES = 16

REFUSE, WARN = "refuse", "warn"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBad:
    """One entry of the table; `known_bad.toml` says what each field means."""

    id: str
    first: tuple[int, int]
    last: tuple[int, int]
    targets: tuple[str, ...]
    mask: int
    value: int
    same: tuple[int, int] | None
    severity: str
    what: str
    hint: str
    thread: str

    def covers(self, toolchain: Toolchain, target: str) -> bool:
        """Whether this ptxas makes this mistake for this target."""
        return self.first <= toolchain.version <= self.last and target in self.targets

    def matches(self, instruction: bytes) -> bool:
        """Whether the instruction is the mistake."""
        if int.from_bytes(instruction, "little") & self.mask != self.value:
            return False
        return self.same is None or instruction[self.same[0]] == instruction[self.same[1]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A known mistake in a cubin, and at which bytes of which kernel's code; none if all of it."""

    known: KnownBad
    entry: str
    offsets: tuple[int, ...]

    def __str__(self) -> str:
        at = f" at {', '.join(hex(offset) for offset in self.offsets)}" if self.offsets else ""
        return f"{self.known.what}{at} ({self.known.thread})"


@lru_cache
def known_bad() -> tuple[KnownBad, ...]:
    """The table."""
    text = (files(__package__) / "known_bad.toml").read_text(encoding="utf-8")
    return tuple(_entry(**row) for row in tomllib.loads(text)["entry"])


def scan(cubin: Cubin, toolchain: Toolchain) -> tuple[Finding, ...]:
    """The known mistakes of this toolchain that a cubin holds.

    Raises:
        ToolchainError: the image is not a cubin.

    """
    covering = [known for known in known_bad() if known.covers(toolchain, cubin.target)]
    return tuple(
        finding
        for known in covering
        for entry in entries_of(cubin.image)
        for finding in _look(known, cubin, entry)
    )


def require_none(cubin: Cubin, toolchain: Toolchain, where: str) -> None:
    """Refuse a cubin with a mistake that makes numbers wrong.

    Raises:
        ToolchainError: the cubin holds a mistake to refuse; names it, its place and its thread.

    """
    for finding in scan(cubin, toolchain):
        if finding.known.severity == REFUSE:
            raise ToolchainError(
                f"{finding} [{toolchain.name}]", where=where, hint=finding.known.hint
            )


def _look(known: KnownBad, cubin: Cubin, entry: str) -> Iterator[Finding]:
    if not known.mask:
        yield Finding(known=known, entry=entry, offsets=())
        return
    code = code_of(cubin.image, entry)
    offsets = tuple(
        at
        for at in range(0, len(code), INSTRUCTION_BYTES)
        if known.matches(code[at : at + INSTRUCTION_BYTES])
    )
    if offsets:
        yield Finding(known=known, entry=entry, offsets=offsets)


def _entry(
    *,
    ptxas: list[str],
    targets: list[str],
    mask: str = "0",
    value: str = "0",
    same: tuple[int, int] | None = None,
    **words: str,
) -> KnownBad:
    first, last = (_release(release) for release in ptxas)
    return KnownBad(
        first=first,
        last=last,
        targets=tuple(Arch(target).name for target in targets),
        mask=int(mask.replace(" ", ""), 16),
        value=int(value.replace(" ", ""), 16),
        same=same,
        **words,
    )


def _release(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)
