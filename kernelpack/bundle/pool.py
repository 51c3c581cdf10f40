"""Strings and records as they are written: equal ones once, in the order they first come."""

from collections.abc import Sequence
from struct import pack

from kernelpack.bundle.format import FIELDS, MAX_ITEMS, MAX_TEXT_BYTES, RECORD, Kind, aligned
from kernelpack.errors import BundleError

Text = tuple[int, int]
"""Offset and size in `strings`."""

List = tuple[int, int]
"""Offset and count in `records`."""


class Pool:
    """The `strings` and `records` sections while they grow."""

    def __init__(self) -> None:
        self._strings = _Area()
        self._records = _Area()

    def text(self, value: str) -> Text:
        """Where a string lies."""
        data = value.encode()
        if len(data) > MAX_TEXT_BYTES:
            what = f"a text of {len(data)} bytes: a bundle holds at most {MAX_TEXT_BYTES}"
            raise BundleError(what, hint=f"it starts: {value[:60]}")
        return self._strings.place(data), len(data)

    def record(self, kind: Kind, *fields: float | bytes, tail: bytes = b"") -> int:
        """Where a record lies: its fields in the order of the format, then its tail."""
        body = FIELDS[kind].pack(*fields) + tail
        return self._words(RECORD.pack(kind, RECORD.size + len(body)) + body)

    def list(self, items: Sequence[int], most: int = MAX_ITEMS) -> List:
        """Where a list of refs or numbers lies."""
        if len(items) > most:
            raise BundleError(f"a list of {len(items)} items: a bundle holds at most {most}")
        return self._words(pack(f"<{len(items)}I", *items)), len(items)

    def _words(self, data: bytes) -> int:
        return self._records.place(data + bytes(aligned(len(data)) - len(data)))

    @property
    def strings(self) -> bytes:
        """The `strings` section."""
        return b"".join(self._strings.pieces)

    @property
    def records(self) -> bytes:
        """The `records` section."""
        return b"".join(self._records.pieces)


class _Area:
    """Pieces of bytes one after another, each different."""

    def __init__(self) -> None:
        self.pieces: dict[bytes, int] = {}
        self._end = 0

    def place(self, data: bytes) -> int:
        """The offset of these bytes, which are added where they are new."""
        if data not in self.pieces:
            if self._end + len(data) >= 1 << 32:
                raise BundleError("the index would exceed 4 GiB", hint="split the bundle by kernel")
            self.pieces[data] = self._end
            self._end += len(data)
        return self.pieces[data]
