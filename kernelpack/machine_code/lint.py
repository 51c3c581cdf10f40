"""Rules that machine code must keep, looked for in many kernels at once.

The words of each rule are in `lint.toml`, beside those of `toolchain/known_bad.toml`: those are
mistakes of compilers, these mistakes of kernels that compilers let pass. An assembler may move what
a kernel's author thought was ordered, so the machine code is asked, not the source.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from kernelpack.machine_code.disassembler import Disassembler
from kernelpack.machine_code.flow import Flow, flow_of
from kernelpack.machine_code.instruction import Kernel, read
from kernelpack.machine_code.rules import RULES

REFUSE, WARN = "refuse", "warn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The words of one rule; `lint.toml` says what each field means."""

    id: str
    severity: str
    what: str
    hint: str
    thread: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A rule that a kernel breaks, and at which bytes of its code."""

    rule: Rule
    offsets: tuple[int, ...]

    def __str__(self) -> str:
        at = ", ".join(hex(offset) for offset in self.offsets)
        return f"{self.rule.what} at {at} [{self.rule.id}; {self.rule.thread}]"

    @property
    def is_refused(self) -> bool:
        """Whether a kernel with it must not be shipped."""
        return self.rule.severity == REFUSE


Findings = tuple[Finding, ...]


@lru_cache
def rules() -> dict[str, Rule]:
    """The words of every rule, by id."""
    text = (files(__package__) / "lint.toml").read_text(encoding="utf-8")
    return {row["id"]: Rule(**row) for row in tomllib.loads(text)["rule"]}


def lint(kernels: Sequence[Kernel], disassembler: Disassembler) -> list[Findings]:
    """The findings of each kernel.

    Raises:
        ToolchainError: nvdisasm does not know a target or an instruction, or did not run.

    """
    return [_findings(flow_of(code)) for code in read(kernels, disassembler)]


def _findings(flow: Flow) -> Findings:
    found = {name: tuple(sorted(at.at for at in find(flow))) for name, find in RULES.items()}
    return tuple(
        Finding(rule=rules()[name], offsets=offsets) for name, offsets in found.items() if offsets
    )
