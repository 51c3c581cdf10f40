"""Why a variant is compiled: which parts of its key changed since it was built last.

The cache keeps a note a kernel: the parts of each variant's key at its last build. Of builds that
run at the same time the last one's note stays; nothing but explanations depends on it.
"""

import json
import re
from collections.abc import Iterable, Mapping

from kernelpack.cache.key import Key
from kernelpack.cache.store import Store
from kernelpack.spec.variant import Variant

_DIGEST = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{56}\b")


class History:
    """The keys of the last builds of some kernels."""

    def __init__(self, store: Store, kernels: Iterable[str]) -> None:
        self._store = store
        self._last = {kernel: self._recall(kernel) for kernel in sorted(set(kernels))}

    def reasons(self, variant: Variant, key: Key) -> tuple[str, ...]:
        """Changes since the variant was built last, for people; never empty."""
        last = self._last[variant.kernel].get(variant.id)
        return ("never built before with this cache",) if last is None else _changes(last, key)

    def remember(self, built: Mapping[Variant, Key]) -> None:
        """Note the keys of what was built now."""
        for kernel, last in self._last.items():
            now = {v.id: dict(key.parts) for v, key in built.items() if v.kernel == kernel}
            if last | now != last:
                note = json.dumps(last | now, sort_keys=True)
                self._store.note(_note(kernel), note.encode())

    def _recall(self, kernel: str) -> dict[str, dict[str, str]]:
        note = self._store.recall(_note(kernel))
        try:
            last = json.loads(note or b"{}")
        except ValueError:  # of another version, or somebody else's: nothing is known then
            last = {}
        return last if _is_note(last) else {}


def _is_note(last: object) -> bool:
    """Whether it is what `remember` notes: of each variant, the parts of its key."""
    return isinstance(last, dict) and all(isinstance(parts, dict) for parts in last.values())


def _changes(last: Mapping[str, str], key: Key) -> tuple[str, ...]:
    now = dict(key.parts)
    changed = [name for name in now | dict(last) if now.get(name) != last.get(name)]
    found = tuple(_change(name, last.get(name), now.get(name)) for name in changed)
    return found or ("the cache no longer holds it",)


def _change(name: str, old: str | None, new: str | None) -> str:
    if old is None:
        return f"{name} is new"
    if new is None:
        return f"{name} is gone"
    return f"{name} changed: {_short(old)} → {_short(new)}"


def _short(value: str) -> str:
    return _DIGEST.sub(r"\1…", value)


def _note(kernel: str) -> str:
    return f"{kernel}.last.json"
