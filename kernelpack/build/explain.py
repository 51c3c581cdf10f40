"""Why a variant is compiled: which parts of its key changed since it was built last.

The cache keeps a note a kernel: the parts of each variant's key at its last build. Of builds that
run at the same time the last one's note stays; nothing but explanations depends on it.
"""

import json
import re
from collections.abc import Iterable, Mapping

from kernelpack.build.key import Key
from kernelpack.cache.store import Store

_DIGEST = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{56}\b")


class History:
    """The keys of the last builds of some kernels."""

    def __init__(self, store: Store, kernels: Iterable[str]) -> None:
        self._store = store
        self._last = {kernel: self._recall(kernel) for kernel in sorted(set(kernels))}

    def reasons(self, kernel: str, variant_id: str, key: Key) -> tuple[str, ...]:
        """What changed since the variant was built last, for people; never empty."""
        last = self._last[kernel].get(variant_id)
        return ("never built before with this cache",) if last is None else _changes(last, key)

    def remember(self, kernel: str, keys: Mapping[str, Key]) -> None:
        """Note the keys of what was built now, by variant id."""
        now = {variant_id: dict(key.parts) for variant_id, key in keys.items()}
        merged = self._last[kernel] | now
        if merged != self._last[kernel]:
            self._store.note(_note(kernel), json.dumps(merged, sort_keys=True).encode())

    def _recall(self, kernel: str) -> dict[str, dict[str, str]]:
        note = self._store.recall(_note(kernel))
        return json.loads(note) if note else {}


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
