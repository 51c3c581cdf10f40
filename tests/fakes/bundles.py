"""Bundles of made-up machine code, written by the real writer."""

from collections.abc import Sequence
from pathlib import Path

from kernelpack.bundle.entry import Entry, Provenance
from kernelpack.bundle.writer import write
from kernelpack.spec.artifact import Resources, digest
from kernelpack.spec.params import Slot
from kernelpack.spec.variant import Variant


def entry(variant: Variant, *, image: bytes = b"", slots: tuple[Slot, ...] | None = None) -> Entry:
    """An entry whose cubin is a few bytes."""
    target = str(variant.arch)
    resources = Resources(
        entry=variant.entry,
        target=target,
        registers=128,
        shared_bytes=0,
        stack_bytes=0,
        spill_bytes=0,
        slots=variant.slots if slots is None else slots,
    )
    return Entry(
        variant=variant,
        resources=resources,
        image=image or f"cubin of {variant.id}".encode(),
        target=target,
        ptx_digest=digest(f"ptx of {variant.id}"),
        source_digest=digest(f"source of {variant.id}"),
    )


def provenance(release: str = "13.0") -> Provenance:
    """Who made a bundle: a toolchain that there is not."""
    return Provenance(
        kernelpack="0.1.0",
        toolchain=f"cuda-{release}",
        front_end="nvrtc",
        release=release,
        toolchain_digest=digest("toolchain"),
    )


def write_bundle(path: Path, entries: Sequence[Entry | Variant], *, release: str = "13.0") -> Path:
    """Write a bundle of entries, or of variants with nothing special about them."""
    made = [e if isinstance(e, Entry) else entry(e) for e in entries]
    write(made, path, provenance(release))
    return path
