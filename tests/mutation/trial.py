"""One run of a subject on the emulator: everything that is wrong with it, by name."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kernelpack.emulator.call import call
from kernelpack.emulator.faults import Level
from kernelpack.emulator.ptx.parser import Program, parse
from kernelpack.errors import KernelpackError
from kernelpack.spec.artifact import Ptx
from kernelpack.spec.variant import Variant
from kernelpack.verify.compare import compare
from kernelpack.verify.key import variant_digest
from tests.kept import Compile, folder_digest, names
from tests.mutation.fault import Caught, Fault
from tests.mutation.subject import Subject

STEP_LIMIT = 4_000_000
"""Warp instructions; an unharmed subject whose warps poll needs a quarter of it."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A compiled subject, with or without a fault."""

    subject: Subject
    variant: Variant
    ptx: Ptx

    def broken(self, schedule: str, level: Level = Level.WARN) -> frozenset[str]:
        """What is wrong under a schedule: rules, the error that ended the run, the numbers."""
        parts = (
            ("ptx", self.ptx.digest),
            ("variant", variant_digest(self.variant)),
            ("subject", self.subject.name),
            ("subjects", folder_digest(Path(__file__).parent, (".py",))),
            ("schedule", schedule),
            ("level", level.name),
        )
        return names(parts, lambda: self._run(schedule, level))

    def _run(self, schedule: str, level: Level) -> frozenset[str]:
        subject = self.subject
        try:
            called = call(
                _parsed(self.ptx.text),
                self.variant,
                subject.sizes,
                subject.inputs,
                schedule=schedule,
                level=level,
                step_limit=STEP_LIMIT,
            )
        except KernelpackError:
            return frozenset({Caught.REFUSED})
        found = {finding.rule.name for finding in called.result.findings}
        if called.result.error is not None:
            return frozenset(found | {type(called.result.error).__name__})
        right = all(
            compare(name, array, subject.expected[name]).is_right
            for name, array in called.outputs.items()
        )
        return frozenset(found if right else found | {Caught.NUMBERS})


def make(subject: Subject, fault: Fault | None, compile_source: Compile) -> Trial:
    """Put the fault in and compile."""
    variant = subject.variant(fault)
    ptx = compile_source(subject.source(variant, fault), subject.arch)
    return Trial(subject, variant, ptx)


@lru_cache(maxsize=8)
def _parsed(text: str) -> Program:
    return parse(text)
