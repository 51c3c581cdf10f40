"""The key of a thing in the cache: named inputs, and one digest over them.

A key is made of content alone. No modification time and no absolute path takes part, so a key
means the same on every machine.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path

import kernelpack


@dataclass(frozen=True, kw_only=True)
class Key:
    """The parts, by a name that people read, and the digest of all of them."""

    parts: tuple[tuple[str, str], ...]

    @cached_property
    def digest(self) -> str:
        """SHA-256 over names and values; the name of the output in the cache."""
        return _digest(json.dumps(self.parts).encode())


@lru_cache
def code_digest(*parts: str) -> str:
    """SHA-256 over kernelpack's own folders or files, such as `toolchain`; all if none is named.

    What a step does is part of what its output depends on: another version of kernelpack must
    never be served what an older one made in another way.
    """
    root = Path(kernelpack.__file__).parent
    return _digest("\n".join(_lines(root, parts)).encode())


def _lines(root: Path, parts: tuple[str, ...]) -> Iterator[str]:
    """Each file of code: its path and its digest."""
    tops = [root / part for part in parts] or [root]
    for file in sorted(f for top in tops for f in [top, *top.rglob("*")] if f.suffix in _CODE):
        yield f"{file.relative_to(root)} {_digest(file.read_bytes())}"


_CODE = {".py", ".toml", ".yaml"}


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
