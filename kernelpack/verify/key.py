"""The inputs of a run: a change of any means a new run.

The PTX is one half. The other: the variant's parameters, maps, launch and guards; the case with
the oracle, its inputs and bounds; the schedule, seed and level; and the emulator's own code.
Not: the variant's cost. Selection is asked anew by every plan.

Nor the name of the target, but what the emulator asks its row for. So the same PTX for sm_100a and
for sm_103a, whose rows differ in the devices that they run on, has one outcome (ADR 0022).
"""

import re
from dataclasses import replace
from functools import lru_cache

from kernelpack.cache.key import Key, code_digest
from kernelpack.spec.arch import FAMILIES, of_ptx
from kernelpack.spec.artifact import digest
from kernelpack.spec.variant import Variant
from kernelpack.verify.job import Job

_EMULATOR = ("emulator", "spec", "formats", "verify/prove.py", "verify/outcome.py")
_ORACLE = ("kernels", "formats", "verify/compare.py")
_TARGET = re.compile(r"^\.target\s+(\w+)", re.MULTILINE)


def job_key(job: Job, variant: Variant, code: str, version: str = "") -> Key:
    """The parts, by a name that people read; `code` as of `code_of`, `version` of the oracle."""
    return Key(
        parts=(
            ("ptx", code),
            ("variant", variant_digest(variant)),
            ("case", f"{job.kernel} {job.case!r}"),
            ("multiprocessors", str(job.sm_count)),
            ("schedule", f"{job.schedule} {job.seed}"),
            ("level", job.level.name),
            ("oracle", oracle_version(version)),
            ("emulator", emulator_version()),
        )
    )


def code_of(ptx: str) -> str:
    """The digest of PTX with its target's row in place of the target's name."""
    return digest(_TARGET.sub(lambda found: _row(found[1]), ptx, count=1))


@lru_cache(maxsize=64)
def _row(target: str) -> str:
    """The part of a target's row that the emulator reads: all but its devices."""
    families = [family.name for family in FAMILIES if family.has(target)]
    return f"{families} {replace(of_ptx(target), capabilities=())}"


def emulator_version() -> str:
    """The digest of the code that runs PTX and looks for faults."""
    return code_digest(*_EMULATOR)


def oracle_version(*others: str) -> str:
    """The digest of the code that says what is right: cases, inputs, oracles and bounds.

    `others` are digests of what is not part of kernelpack.
    """
    ours, theirs = code_digest(*_ORACLE), sorted({*others} - {""})
    return digest(" ".join([ours, *theirs])) if theirs else ours


@lru_cache(maxsize=4096)
def variant_digest(variant: Variant) -> str:
    """The inputs of a launch: signature, maps, arguments, grid, guards."""
    values = variant.arguments, variant.params, variant.guards, variant.launch
    who = (variant.kernel, _row(variant.arch.name), variant.axes, variant.abi)
    return digest(repr((who, values, variant.workspace_bytes)))
