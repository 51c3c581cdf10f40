"""What changed between two bundles, by id: what came, what went, what uses more or less."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernelpack.bundle.entry import Record
from kernelpack.bundle.reader import Bundle

COMPARED = ("registers", "shared_bytes", "stack_bytes", "spill_bytes", "image_bytes")
"""The numbers of a record that are worth a line when they differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An entry that both bundles hold with other machine code, or for another PTX or source.

    `numbers` holds, for each name of `COMPARED` that differs, the old and the new number.
    """

    old: Record
    new: Record
    numbers: Mapping[str, tuple[int, int]]

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
    """Hold two bundles against each other.

    Raises:
        BundleError: one of them is damaged.

    """
    before = {record.id: record for record in old.records()}
    after = {record.id: record for record in new.records()}
    both = sorted(before.keys() & after.keys())
    changed = tuple(_change(before[key], after[key]) for key in both if before[key] != after[key])
    return Comparison(
        added=tuple(after[key] for key in sorted(after.keys() - before.keys())),
        removed=tuple(before[key] for key in sorted(before.keys() - after.keys())),
        changed=changed,
        same=len(both) - len(changed),
        old_bytes=old.size,
        new_bytes=new.size,
    )


def _change(old: Record, new: Record) -> Change:
    pairs = {name: (getattr(old, name), getattr(new, name)) for name in COMPARED}
    numbers = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    return Change(old=old, new=new, numbers=numbers)
