"""A kernel that faults are seeded into, with a problem that shows them and its oracle."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path

from kernelpack.kernels.definition import Arrays, Expected
from kernelpack.manifest.expand import expand
from kernelpack.manifest.model import Manifest
from kernelpack.manifest.reader import parse
from kernelpack.manifest.schema import load_document
from kernelpack.render.includes import closure
from kernelpack.render.render import render
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Header, Source
from kernelpack.spec.variant import Variant
from tests.mutation.fault import Fault

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TEMPLATES = ROOT / "templates"


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A kernel and a problem.

    Attributes:
        name: kernel, target and problem; that of the file of its faults.
        doc: what it shows, a sentence.
        manifest: its manifest.
        arch: its target.
        axes: which of the manifest's variants.
        sizes: of the problem and the device.
        arrays: makes the inputs.
        oracle: the outputs that inputs must give.
        caps: names of the manifest whose values are held down, so that rings turn.
        warps: of a CTA.
        cluster: CTAs of a cluster.
        is_shown_elsewhere: whether a test that runs each time has the kernel without a fault.

    """

    name: str
    doc: str
    manifest: Path
    arch: str
    axes: Mapping[str, int | str]
    sizes: Mapping[str, int]
    arrays: Callable[[], Arrays]
    oracle: Callable[[Arrays], Mapping[str, Expected]]
    caps: Mapping[str, int] = field(default_factory=dict)
    warps: int
    cluster: int = 1
    is_shown_elsewhere: bool = False

    @cached_property
    def inputs(self) -> Arrays:
        """The problem's arrays."""
        return self.arrays()

    @cached_property
    def expected(self) -> Mapping[str, Expected]:
        """The oracle's answer."""
        return self.oracle(self.inputs)

    def schedules(self) -> list[str]:
        """Every interleaving of the default level, in the order in which they are tried."""
        held = [f"starving:{r}:{w}" for r in range(self.cluster) for w in range(self.warps)]
        return ["eager", "lazy", *held]

    def text(self) -> str:
        """The manifest as a trial reads it, with its caps."""
        return _capped(self.manifest.read_text(), self.caps)

    def variant(self, fault: Fault | None = None) -> Variant:
        """The variant, with the fault if it is one of the manifest."""
        text = self.text()
        if fault is not None and fault.file == self.manifest.name:
            text = fault.apply(text)
        manifest = _loaded(text, self.manifest.name)
        own = {n: (self.axes[n],) if n in self.axes else v for n, v in manifest.axes.items()}
        (found,) = expand(manifest.model_copy(update={"axes": own}), [Arch(self.arch)])
        return found

    def source(self, variant: Variant, fault: Fault | None = None) -> Source:
        """The variant's source, with the fault if it is in a source or header."""
        source = _own(variant) if variant.kernel == "gemm" else render(variant, TEMPLATES)
        if fault is None or fault.file == self.manifest.name:
            return source
        return fault.apply_to_source(source)


@cache
def _loaded(text: str, name: str) -> Manifest:
    """A manifest, which several subjects share."""
    return load_document(parse(text, name))


def _capped(text: str, caps: Mapping[str, int]) -> str:
    """A manifest's text in which each of these names is at most its cap, in any block."""
    for name, cap in caps.items():
        # A value of a line, in quotes or not, or folded over the more indented lines that follow.
        value = rf'(?m)^( +){name}: (?:>-\n((?:\1 +.*\n)+)|"?(.*?)"?\n)'
        text, count = re.subn(value, partial(_at_most, name, cap), text)
        assert count, f"`{name}` has no value in the manifest"
    return text


def _at_most(name: str, cap: int, found: re.Match[str]) -> str:
    value = " ".join((found[2] or found[3]).split())
    return f'{found[1]}{name}: "min({cap}, {value})"\n'


def _own(variant: Variant) -> Source:
    """The source of a kernel of this folder."""
    text = (HERE / variant.template).read_text()
    own = Header(path="mutation/bulk_store.cuh", text=(HERE / "bulk_store.cuh").read_text())
    return Source(
        variant_id=variant.id,
        entry=variant.entry,
        name=variant.template,
        text=text,
        headers=(*closure(text, variant.template, TEMPLATES), own),
    )
