"""One run of a subject on the emulator: everything that is wrong with it, by name."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from kernelpack.emulator.call import call
from kernelpack.emulator.faults import Level
from kernelpack.emulator.ptx.parser import Program, parse
from kernelpack.errors import KernelpackError
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Ptx, Source
from kernelpack.spec.variant import Variant
from kernelpack.toolchain.locate import find
from kernelpack.toolchain.nvrtc import compile_in_process
from kernelpack.verify.compare import compare
from tests.mutation.fault import Caught, Fault
from tests.mutation.subject import Subject

Compile = Callable[[Source, str], Ptx]
"""`(source, target)` → PTX."""

STEP_LIMIT = 400_000
"""Warp instructions; an unharmed subject needs a tenth of it."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A compiled subject, with or without a fault."""

    subject: Subject
    variant: Variant
    program: Program

    def broken(self, schedule: str, level: Level = Level.WARN) -> frozenset[str]:
        """What is wrong under a schedule: rules, the error that ended the run, the numbers."""
        subject = self.subject
        try:
            called = call(
                self.program,
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
    return Trial(subject, variant, _parsed(ptx.text))


@lru_cache(maxsize=8)
def _parsed(text: str) -> Program:
    return parse(text)


def compile_here(source: Source, arch: str) -> Ptx:
    """Compile in this process, which then serves one NVRTC."""
    return compile_in_process(source, find(), Arch(arch))
