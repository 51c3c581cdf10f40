"""Mistakes of a kernel's sources: a change of one text, and whether its telling cases show it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kernelpack.emulator.call import call
from kernelpack.emulator.ptx.parser import Program, parse
from kernelpack.kernels.definition import Case, Definition
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.render.render import render
from kernelpack.spec.arch import Arch
from kernelpack.spec.select import judge
from kernelpack.spec.variant import Variant
from kernelpack.toolchain.locate import find
from kernelpack.toolchain.nvrtc import compile_in_process
from kernelpack.verify.compare import compare
from tests.machine_code.build import ROOT

ARCH = Arch("sm_90a")


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A replacement in one text of a kernel.

    Attributes:
        definition: the kernel.
        axes: which of its variants.
        file: the template or header that is changed.
        old: what stands there.
        new: what stands there instead.

    """

    definition: Definition
    axes: Mapping[str, int | str] = field(default_factory=dict)
    file: str
    old: str
    new: str

    def is_caught(self) -> bool:
        """Whether some telling case has wrong numbers, a finding or an error."""
        program, variant = self._made()
        served = [case for case in self.definition.telling() if _serves(variant, case)]
        return not all(self._is_right(program, variant, case) for case in served)

    def _made(self) -> tuple[Program, Variant]:
        """The variant with the mistake in it."""
        manifest = load(ROOT / f"manifests/{self.definition.stem}.yaml")
        listed = expand(manifest, [ARCH])
        (variant,) = [v for v in listed if self.axes.items() <= dict(v.axes).items()]
        source = render(variant, ROOT / "templates")
        headers = tuple(replace(h, text=self._changed(h.text, h.path)) for h in source.headers)
        whole = replace(source, text=self._changed(source.text, source.name), headers=headers)
        assert whole != source, f"{self.file} is not among the kernel's texts"
        return parse(compile_in_process(whole, find(), ARCH).text), variant

    def _changed(self, text: str, path: str) -> str:
        if path != self.file:
            return text
        assert self.old in text, f"`{self.old}` does not stand in {path}"
        return text.replace(self.old, self.new)

    def _is_right(self, program: Program, variant: Variant, case: Case) -> bool:
        arrays = self.definition.inputs(case)
        called = call(program, variant, {**case.sizes, "sm_count": 1}, arrays)
        if called.result.error or called.result.findings:
            return False
        oracle = self.definition.expected(case, arrays)
        return all(compare(name, called.outputs[name], oracle[name]).is_right for name in oracle)


def _serves(variant: Variant, case: Case) -> bool:
    sizes = {**case.sizes, "sm_count": 1}
    return judge(variant, sizes, ARCH.capabilities[0]).cost is not None
