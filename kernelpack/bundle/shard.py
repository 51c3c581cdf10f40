"""Which part of a build a bundle is, where machines share one: `2/3 of 0f1e2d3c4b5a6978`."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

T = TypeVar("T")

_TEXT = re.compile(r"(\d{1,6})/(\d{1,6})(?: of ([0-9a-f]{16}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A part of a whole; parts count from 1.

    Attributes:
        number: which part.
        count: of how many.
        whole: what identifies a split build, see `whole_of`; empty until it is known.

    """

    number: int
    count: int
    whole: str = ""

    def __str__(self) -> str:
        return f"{self.number}/{self.count}" + (f" of {self.whole}" if self.whole else "")

    def part(self, items: Sequence[T]) -> tuple[T, ...]:
        """Its part of the items: every `count`-th, for neighbours take about as long to compile."""
        return tuple(items[self.number - 1 :: self.count])


def parse_shard(text: str) -> Shard | None:
    """The value whose text this is; None if it is no shard's."""
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    shard = Shard(number=int(match[1]), count=int(match[2]), whole=match[3] or "")
    return shard if 1 <= shard.number <= shard.count else None


def whole_of(ids: Iterable[str]) -> str:
    """The identity of the whole of some shards: a digest of the ids of all its variants."""
    return sha256("\n".join(ids).encode()).hexdigest()[:16]
