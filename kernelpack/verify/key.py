"""What the outcome of a run depends on, so that it is run again when any of it changes.

The PTX is one half. The other: the variant's parameters, maps, launch and guards; the case with
the oracle, its inputs and bounds; the schedule, seed and level; and the emulator's own code.
Not: the variant's cost. Selection is asked anew by every plan.
"""

from dataclasses import astuple
from functools import lru_cache

from kernelpack.build.key import Key, code_digest
from kernelpack.spec.artifact import digest
from kernelpack.spec.variant import Variant
from kernelpack.verify.job import Job

_EMULATOR = ("emulator", "spec", "formats", "verify/prove.py", "verify/outcome.py")
_ORACLE = ("kernels", "formats", "verify/compare.py")


def job_key(job: Job, variant: Variant, ptx_digest: str) -> Key:
    """The parts, by a name that people read."""
    return Key(
        parts=(
            ("ptx", ptx_digest),
            ("variant", variant_digest(variant)),
            ("case", f"{job.kernel} {job.case!r}"),
            ("multiprocessors", str(job.sm_count)),
            ("schedule", f"{job.schedule} {job.seed}"),
            ("level", job.level.name),
            ("oracle", oracle_version()),
            ("emulator", emulator_version()),
        )
    )


def emulator_version() -> str:
    """The digest of the code that runs PTX and looks for faults."""
    return code_digest(*_EMULATOR)


def oracle_version() -> str:
    """The digest of the code that says what is right: cases, inputs, oracles and bounds."""
    return code_digest(*_ORACLE)


@lru_cache(maxsize=4096)
def variant_digest(variant: Variant) -> str:
    """What decides a launch: signature, maps, arguments, grid, guards."""
    parts = (variant.arguments, variant.params, variant.guards)
    values = [[astuple(part) for part in group] for group in parts]
    launch = astuple(variant.launch)
    return digest(repr((variant.id, variant.abi, values, launch, variant.workspace_bytes.code)))
