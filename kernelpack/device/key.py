"""The inputs of a run on a GPU: a change of any means a new run.

The machine code, how it is launched, the case with its oracle, the device, its driver, and the code
that runs and compares. Not: the bundle, so that a variant that another one holds too is known.
"""

from kernelpack.cache.key import Key, code_digest
from kernelpack.spec.variant import Variant
from kernelpack.verify.job import Job
from kernelpack.verify.key import oracle_version, variant_digest

_RUNS = (
    *("device/prove.py", "device/child.py", "verify/compare.py", "verify/outcome.py"),
    *("ops/trial.py", "runtime", "load", "spec"),
)


def job_key(
    job: Job, variant: Variant, image: str, machine: str, repeats: int, version: str = ""
) -> Key:
    """The parts, by a name that people read.

    `image` is the digest of the machine code, `version` that of an oracle of one's own.
    """
    return Key(
        parts=(
            ("machine code", image),
            ("variant", f"{variant.arch} {variant_digest(variant)}"),
            ("case", f"{job.kernel} {job.case!r}"),
            ("machine", machine),
            ("repeats", str(repeats)),
            ("oracle", oracle_version(version)),
            ("runner", runner_version()),
        )
    )


def runner_version() -> str:
    """The digest of the code that runs variants on a GPU and compares what they write."""
    return code_digest(*_RUNS)
