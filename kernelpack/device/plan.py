"""Which runs prove variants on a GPU: every variant that it can run, on every case that it serves.

A GPU does a case in less time than its oracle takes, so nothing is left out; interleavings are the
hardware's own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelpack.device.batch import SCHEDULE
from kernelpack.errors import SelectionError
from kernelpack.kernels.definition import Case, Definition
from kernelpack.runtime.driver import Device
from kernelpack.spec.select import judge, select
from kernelpack.spec.variant import Variant
from kernelpack.verify.job import Job
from kernelpack.verify.plan import sizes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """The runs of one kernel on a device.

    Attributes:
        definition: what the kernel means.
        variants: those that selection may take: all of the bundle that the device can run.
        device: the GPU.

    """

    definition: Definition
    variants: Sequence[Variant]
    device: Device

    def cases(self, wanted: frozenset[str]) -> Iterator[tuple[Case, tuple[Job, ...]]]:
        """Each case with the runs of those wanted that serve it."""
        for case in self.definition.cases():
            serving = self._serving(case)
            chosen = self._chosen(serving, case)
            jobs = tuple(self._job(v, case, chosen) for v in serving if v.id in wanted)
            if jobs:
                yield case, jobs

    def _serving(self, case: Case) -> list[Variant]:
        sizes, capability = sizes_of(case, self.device.sm_count), self.device.capability
        return [v for v in self.variants if judge(v, sizes, capability).cost is not None]

    def _chosen(self, serving: Sequence[Variant], case: Case) -> str:
        """The id of the variant that selection takes; empty where none serves."""
        try:
            sizes = sizes_of(case, self.device.sm_count)
            return select(serving, sizes, self.device.capability).id
        except SelectionError:
            return ""

    def _job(self, variant: Variant, case: Case, chosen: str) -> Job:
        return Job(
            variant_id=variant.id,
            kernel=variant.kernel,
            case=case,
            sm_count=self.device.sm_count,
            schedule=SCHEDULE,
            selected=variant.id == chosen,
        )
