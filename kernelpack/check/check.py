"""`check BUNDLE`: what is wrong with a bundle, as values. It launches nothing and needs no GPU.

Every byte is checked against its digest, every cubin's ELF against what the index says of it, and
every instruction against the known mistakes of the compiler that wrote it and, where nvdisasm is
installed, against the rules of `machine_code`. Whether a kernel computes the right numbers is
`verify`'s question.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from kernelpack.build.budget import check_resources
from kernelpack.bundle.entry import Provenance, Record
from kernelpack.bundle.format import Holds
from kernelpack.bundle.provenance import floor
from kernelpack.bundle.reader import Bundle, open_bundle, twin_of
from kernelpack.bundle.signature import Trust, trusted
from kernelpack.check.finding import Finding, finding
from kernelpack.errors import BudgetError, KernelpackError
from kernelpack.machine_code.disassembler import Disassembler, absent
from kernelpack.machine_code.disassembler import find as find_disassembler
from kernelpack.machine_code.instruction import Kernel
from kernelpack.machine_code.lint import lint
from kernelpack.spec.arch import TARGETS
from kernelpack.spec.artifact import Cubin, Resources
from kernelpack.spec.variant import Variant
from kernelpack.toolchain import elf, known_bad
from kernelpack.toolchain.toolchain import Toolchain

COMPARED = ("target", "registers", "shared_bytes", "stack_bytes", "slots")
"""Statements of a cubin that the index repeats; a cubin has no bytes of spills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The findings in a bundle.

    Attributes:
        path: the bundle.
        entries: how many it has; None where it could not be opened.
        findings: what is wrong, or worth a warning.
        unlinted: why nobody looked at the machine code; empty where it was done.

    """

    path: Path
    entries: int | None
    findings: tuple[Finding, ...]
    unlinted: str = ""

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong; warnings may be there."""
        return not any(found.is_error for found in self.findings)


def check(path: Path, trust: Trust | None = None) -> Report:
    """Everything that is wrong with a bundle; with its PTX twin, if that lies beside it.

    Args:
        path: the bundle.
        trust: files of public keys, one of whose owners must have signed it; None: nobody need.

    Raises:
        BundleError: a key cannot be read: that says nothing of the bundle.

    """
    keys = None if trust is None else trusted(trust)
    try:
        bundle = open_bundle(path, keys)
    except KernelpackError as error:
        return Report(path=path, entries=None, findings=(finding(error),))
    disassembler = find_disassembler()
    findings = (*_whole(bundle), *_entries(bundle), *_lint(bundle, disassembler), *_twin(bundle))
    unlinted = "" if disassembler else absent()
    return Report(path=path, entries=len(bundle), findings=findings, unlinted=unlinted)


def _whole(bundle: Bundle) -> Iterator[Finding]:
    """Structure and digests, up to the first mistake, and the CUDA release, which `load` needs."""
    try:
        bundle.verify_all()
        floor(bundle.provenance.release, bundle.where)
    except KernelpackError as error:
        yield finding(error)


def _entries(bundle: Bundle) -> Iterator[Finding]:
    try:
        toolchain, records = _remembered(bundle.provenance), bundle.records()
    except KernelpackError as error:
        yield finding(error)
        return
    for record in records:
        try:
            yield from _entry(bundle, record, toolchain)
        except KernelpackError as error:
            yield finding(error, f"{bundle.path}: {record.id}")


def _entry(bundle: Bundle, record: Record, toolchain: Toolchain | None) -> Iterator[Finding]:
    where = f"{bundle.path}: {record.id}"
    if record.target not in TARGETS:
        what = f"this version does not know {record.target}: only the digests were checked"
        yield Finding(where=where, what=what, hint="upgrade kernelpack", is_error=False)
        return
    cubin = Cubin(
        image=bundle.image(record.id),
        target=record.target,
        spill_store_bytes=0,
        spill_load_bytes=0,
    )
    found, stated = elf.inspect(cubin, record.symbol), bundle.resources(record.id)
    differences = [*_differences(found, stated, where)]
    yield from differences or _claims(bundle.variant(record.id), found, where)
    for mistake in known_bad.scan(cubin, toolchain) if toolchain else ():
        is_error = mistake.known.severity == known_bad.REFUSE
        hint = mistake.known.hint
        yield Finding(where=where, what=str(mistake), hint=hint, is_error=is_error)


def _lint(bundle: Bundle, disassembler: Disassembler | None) -> Iterator[Finding]:
    """Mistakes in the machine code of readable entries; others have their own findings."""
    kernels = dict(_readable(bundle)) if disassembler else {}
    try:
        found = lint(list(kernels.values()), disassembler) if disassembler else []
    except KernelpackError as error:  # says nothing of the bundle
        yield replace(finding(error), is_error=False)
        return
    for variant_id, mistakes in zip(kernels, found, strict=True):
        where = f"{bundle.path}: {variant_id}"
        for mistake in mistakes:
            hint, is_error = mistake.rule.hint, mistake.is_refused
            yield Finding(where=where, what=str(mistake), hint=hint, is_error=is_error)


def _readable(bundle: Bundle) -> Iterator[tuple[str, Kernel]]:
    """The machine code of each entry whose image and target are sound, by id."""
    with suppress(KernelpackError):
        for record in bundle.records():
            with suppress(KernelpackError):
                image, target = bundle.image(record.id), record.target
                if target in TARGETS and target == elf.target_of(image):
                    yield record.id, _kernel(image, record.symbol, target)


def _claims(variant: Variant, found: Resources, where: str) -> Iterator[Finding]:
    """Claims of the manifest about a kernel that fail, such as its budget of registers."""
    try:
        check_resources(variant, found)
    except BudgetError as error:
        yield Finding(where=where, what=error.what, hint="build the bundle again")


def _kernel(image: bytes, entry: str, target: str) -> Kernel:
    code, branches = elf.code_of(image, entry), elf.branches_of(image, entry)
    return Kernel(entry=entry, target=target, code=code, branches=branches)


def _differences(found: Resources, stated: Resources, where: str) -> Iterator[Finding]:
    for name in COMPARED:
        cubin, index = getattr(found, name), getattr(stated, name)
        if cubin != index:
            what = f"{name}: the cubin has {cubin}, the index says {index}"
            yield Finding(where=where, what=what, hint="build the bundle again")


def _remembered(provenance: Provenance) -> Toolchain | None:
    """The toolchain as a bundle remembers it: what it was, not where; None: no CUDA release."""
    parts = provenance.release.split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts):
        return None
    return Toolchain(
        name=provenance.toolchain,
        front_end=provenance.front_end,
        release=provenance.release,
        nvrtc_library=None,
        nvcc=None,
        ptxas=Path(),
        include_dirs=(),
        versions=provenance.versions,
        digest=provenance.toolchain_digest,
        ptxas_digest="",
    )


def _twin(bundle: Bundle) -> Iterator[Finding]:
    """The PTX beside a bundle: whole, and all that the entries name."""
    path = twin_of(bundle.path)
    if bundle.holds is Holds.PTX or not path.exists():
        return
    try:
        open_bundle(path).verify_all()
        for record in bundle.records():
            yield from _text(bundle.ptx(record.ptx_digest).text, record, path)
    except KernelpackError as error:
        yield finding(error)


def _text(ptx: str, record: Record, path: Path) -> Iterator[Finding]:
    """PTX that is not that of its entry."""
    where = f"{path}: {record.id}"
    for what, pattern in (
        (f"entry `{record.symbol}`", rf"\.entry\s+{re.escape(record.symbol)}\b"),
        (f"target {record.target}", rf"^\s*\.target\s+{re.escape(record.target)}\b"),
    ):
        if not re.search(pattern, ptx, re.MULTILINE):
            yield Finding(
                where=where, what=f"the PTX lacks the {what}", hint="build the bundle again"
            )
