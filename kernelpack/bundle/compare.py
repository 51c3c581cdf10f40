"""Changes between two bundles, by id: new, gone, larger and smaller entries."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernelpack.bundle.entry import Record
from kernelpack.bundle.reader import Bundle
from kernelpack.spec.variant import Variant

COMPARED = ("registers", "shared_bytes", "stack_bytes", "spill_bytes", "image_bytes")
"""The numbers of a record that are worth a line when they differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An entry that both bundles hold, with other machine code, PTX, source, or another launch.

    `numbers` holds, for each name of `COMPARED` that differs, the old and the new number; for
    `dynamic_shared_bytes`, which a launch asks for, the old and the new expression.
    """

    old: Record
    new: Record
    numbers: Mapping[str, tuple[int | str, int | str]]

    @property
    def id(self) -> str:
        """The id that both have."""
        return self.new.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The difference of two bundles, each part sorted by id; sizes are bytes of whole files."""

    added: tuple[Record, ...]
    removed: tuple[Record, ...]
    changed: tuple[Change, ...]
    same: int
    old_bytes: int
    new_bytes: int


def compare(old: Bundle, new: Bundle) -> Comparison:
    """Compare two bundles.

    Raises:
        BundleError: one of them is damaged.

    """
    before, after = _held(old), _held(new)
    both = sorted(before.keys() & after.keys())
    changed = tuple(_change(before[key], after[key]) for key in both if before[key] != after[key])
    return Comparison(
        added=tuple(after[key][0] for key in sorted(after.keys() - before.keys())),
        removed=tuple(before[key][0] for key in sorted(before.keys() - after.keys())),
        changed=changed,
        same=len(both) - len(changed),
        old_bytes=old.size,
        new_bytes=new.size,
    )


_Held = tuple[Record, Variant | None]
"""An entry with its variant; None where this version does not know its target."""


def _held(bundle: Bundle) -> dict[str, _Held]:
    variants = {variant.id: variant for variant in bundle.variants()}
    return {record.id: (record, variants.get(record.id)) for record in bundle.records()}


def _change(old: _Held, new: _Held) -> Change:
    before, after = _numbers(*old), _numbers(*new)
    numbers = {name: (before[name], after[name]) for name in before if before[name] != after[name]}
    return Change(old=old[0], new=new[0], numbers=numbers)


def _numbers(record: Record, variant: Variant | None) -> dict[str, int | str]:
    dynamic = str(variant.launch.shared_bytes) if variant else ""
    return {name: getattr(record, name) for name in COMPARED} | {"dynamic_shared_bytes": dynamic}
