"""Mistakes of a kernel's sources: a change of one text, and whether its telling cases show it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kernelpack.kernels.definition import Case, Definition
from kernelpack.render.render import render
from kernelpack.spec.arch import Arch
from kernelpack.spec.select import judge
from kernelpack.spec.variant import Variant
from kernelpack.verify.job import Job
from tests.kept import ROOT, compiled, proven
from tests.machine_code.build import variants

ARCH = Arch("sm_90a")


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A replacement in one text of a kernel.

    Attributes:
        definition: the kernel.
        axes: which of its variants.
        file: the template or header that is changed.
        old: what is there.
        new: what is there instead.

    """

    definition: Definition
    axes: Mapping[str, int | str] = field(default_factory=dict)
    file: str
    old: str
    new: str

    def is_caught(self) -> bool:
        """Whether some telling case has wrong numbers, a finding or an error."""
        ptx, variant = self._made()
        served = [case for case in self.definition.telling() if _serves(variant, case)]
        return not all(self._is_right(ptx, variant, case) for case in served)

    def _made(self) -> tuple[str, Variant]:
        """The PTX with the mistake in it, and the variant."""
        stem = self.definition.stem
        listed = [v for v in variants(ARCH.name) if v.kernel == stem]
        (variant,) = [v for v in listed if self.axes.items() <= dict(v.axes).items()]
        source = render(variant, ROOT / "templates")
        headers = tuple(replace(h, text=self._changed(h.text, h.path)) for h in source.headers)
        whole = replace(source, text=self._changed(source.text, source.name), headers=headers)
        assert whole != source, f"{self.file} is not among the kernel's texts"
        return compiled(whole, ARCH.name).text, variant

    def _changed(self, text: str, path: str) -> str:
        if path != self.file:
            return text
        assert self.old in text, f"`{self.old}` is not in {path}"
        return text.replace(self.old, self.new)

    def _is_right(self, ptx: str, variant: Variant, case: Case) -> bool:
        job = Job(
            variant_id=variant.id,
            kernel=self.definition.stem,
            case=case,
            sm_count=1,
            schedule="eager",
        )
        return proven(job, variant, ptx, self.definition).is_right


def _serves(variant: Variant, case: Case) -> bool:
    sizes = {**case.sizes, "sm_count": 1}
    return judge(variant, sizes, ARCH.capabilities[0]).cost is not None
