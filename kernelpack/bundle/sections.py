"""The sections of an index: rows, strings, records and lists, each checked before it is read.

Everything comes through `CheckedIndex`, so what is read here is what the root covers; the checks
here are against an index that was made to hurt.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from struct import unpack
from typing import Any, NoReturn

from kernelpack.bundle.format import (
    ALIGN,
    DAMAGED,
    DIGEST_BYTES,
    FIELDS,
    INDEX,
    MAX_DOCUMENTS_BYTES,
    MAX_ITEMS,
    MAX_TEXT_BYTES,
    RECORD,
    REQUIRED,
    ROWS,
    SECTION,
    Holds,
    Kind,
    Section,
)
from kernelpack.bundle.pool import List, Text
from kernelpack.bundle.tree import CheckedIndex
from kernelpack.errors import BundleError

Fields = tuple[Any, ...]
"""The result of `Struct.unpack`: integers, and bytes where the format says so."""

KNOWN_SECTIONS = frozenset(Section)
NEEDED_SECTIONS = KNOWN_SECTIONS - {Section.NUMBERS}
MAX_SECTIONS = 64
MAX_STRIDE = 4096
STRIDES: dict[int, tuple[int, int]] = {
    section: (row.size, MAX_STRIDE) for section, row in ROWS.items()
}
STRIDES |= {Section.STRINGS: (1, 1), Section.RECORDS: (ALIGN, ALIGN)}
"""The least and the most bytes of a row: a minor version may append to it."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Where a section lies in the index, its number of rows and the bytes of one."""

    offset: int
    count: int
    stride: int

    @property
    def size(self) -> int:
        """Bytes of the section."""
        return self.count * self.stride


def pack_index(
    holds: Holds, sections: dict[Section, bytes], documents_bytes: int, documents_digest: bytes
) -> bytes:
    """The bytes of an index: its head, then the sections in order."""
    start = INDEX.size + SECTION.size * len(sections)
    table, body = b"", b""
    for section, data in sorted(sections.items()):
        stride = ROWS[section].size
        offset = start + len(body)
        table += SECTION.pack(section, REQUIRED, offset, len(data) // stride, stride)
        body += data + bytes(-len(data) % ALIGN)
    size = start + len(body)
    head = INDEX.pack(holds, len(sections), size, documents_bytes, documents_digest)
    return head + table + body


@dataclass(slots=True)
class Sections:
    """An index, by section.

    Raises:
        BundleError: from every method, where an offset, a count or a kind is wrong.

    """

    index: CheckedIndex
    where: str
    holds: Holds = field(init=False)
    documents_bytes: int = field(init=False)
    documents_digest: bytes = field(init=False)
    _rows: dict[int, Rows] = field(init=False)

    def __post_init__(self) -> None:
        if len(self.index) < INDEX.size:
            self.refuse(f"an index of {len(self.index)} bytes has no head")
        holds, count, size, documents, digest = INDEX.unpack(self.index.read(0, INDEX.size))
        if size != len(self.index) or documents > MAX_DOCUMENTS_BYTES or count > MAX_SECTIONS:
            self.refuse(f"index head: {size} bytes, {count} sections, {documents} of documents")
        if holds not in frozenset(Holds):
            self.refuse(f"images of kind {holds}, which this version does not know")
        self.holds, self.documents_bytes, self.documents_digest = Holds(holds), documents, digest
        self._rows = self._read_table(count)

    def refuse(self, what: str) -> NoReturn:
        """Say that the index is wrong."""
        raise BundleError(what, where=self.where, hint=DAMAGED)

    def _read_table(self, count: int) -> dict[int, Rows]:
        """The sections by tag: in order, inside the index, each once."""
        start = INDEX.size + SECTION.size * count
        if start > len(self.index):
            self.refuse(f"{count} sections do not fit an index of {len(self.index)} bytes")
        table: dict[int, Rows] = {}
        head = self.index.read(INDEX.size, SECTION.size * count)
        for tag, flags, offset, rows, stride in SECTION.iter_unpack(head):
            self._check_section(tag, flags, stride)
            if offset % ALIGN or offset < start or tag in table:
                self.refuse(f"section {tag} overlaps another, or is there twice")
            table[tag] = Rows(offset, rows, stride)
            start = offset + rows * stride
        if start > len(self.index):
            self.refuse(f"sections of {start} bytes in an index of {len(self.index)}")
        if missing := NEEDED_SECTIONS - table.keys():
            self.refuse(f"no section {', '.join(s.name.lower() for s in sorted(missing))}")
        return table

    def _check_section(self, tag: int, flags: int, stride: int) -> None:
        if tag not in KNOWN_SECTIONS and flags & REQUIRED:
            what = f"the index needs section {tag}, which this version does not know"
            raise BundleError(what, where=self.where, hint="upgrade kernelpack")
        least, most = STRIDES.get(tag, (0, stride))
        if not least <= stride <= most or (stride % ALIGN and tag != Section.STRINGS):
            self.refuse(f"rows of {stride} bytes in section {tag}")

    def count(self, section: Section) -> int:
        """How many rows a section has; none where it is not there."""
        return self._rows[section].count if section in self._rows else 0

    def row(self, section: Section, number: int) -> Fields:
        """The fields of one row."""
        rows = self._rows[section]
        if number >= rows.count:
            self.refuse(f"row {number} of {section.name.lower()}, which has {rows.count}")
        layout = ROWS[section]
        return layout.unpack(self.index.read(rows.offset + number * rows.stride, layout.size))

    def search(self, section: Section, digest: bytes) -> int | None:
        """The row of a table that is sorted by its first field, a digest; None: there is none.

        Unchecked bytes say where to look, and only what is found there is checked; where they
        lead to nothing, the search is made again on checked bytes.
        """
        table = self._rows[section]
        for search in (self._guess, self._bisect):
            row = search(table, digest)
            if row < table.count and self.row(section, row)[0] == digest:
                return row
        return None

    def _guess(self, table: Rows, digest: bytes) -> int:
        """Digests are spread evenly, so one gives its place: of n rows, to within some sqrt(n).

        The rows found there are closer, and give it to within the root of that; and so on. The C++
        loader takes the same steps, so both find the same row of a table that is not sorted.
        """
        row = _rows_between(bytes(DIGEST_BYTES), digest, table.count)
        for reach in (1, 16, 16, 16):
            first, last = max(0, row - reach), min(table.count, row + reach)
            if first == last:
                break
            keys = self._peek(table, first, last)
            row = first + bisect_left(keys, digest)
            if row == first and first:
                row = max(0, first - _rows_between(digest, keys[0], table.count))
            elif row == last < table.count:
                row = min(table.count, last - 1 + _rows_between(keys[-1], digest, table.count))
            else:
                break
        return row

    def _peek(self, table: Rows, first: int, last: int) -> list[bytes]:
        """The digests that some rows begin with, unchecked."""
        stride = table.stride
        near = self.index.peek(table.offset + first * stride, (last - first) * stride)
        return [near[at : at + DIGEST_BYTES] for at in range(0, len(near), stride)]

    def _bisect(self, table: Rows, digest: bytes) -> int:
        read, offset, stride, size = self.index.read, table.offset, table.stride, len(digest)
        rows = range(table.count)
        return bisect_left(rows, digest, key=lambda row: read(offset + row * stride, size))

    def rows(self, section: Section) -> Iterator[Fields]:
        """The fields of every row."""
        return (self.row(section, number) for number in range(self.count(section)))

    def text(self, at: Text) -> str:
        """A string."""
        offset, size = at
        rows = self._rows[Section.STRINGS]
        if size > MAX_TEXT_BYTES or offset + size > rows.count:
            self.refuse(f"a text of {size} bytes at {offset} leaves the strings or is too long")
        try:
            return self.index.read(rows.offset + offset, size).decode()
        except UnicodeDecodeError:
            self.refuse(f"the text of {size} bytes at {offset} is not UTF-8")

    def list(self, at: List, most: int = MAX_ITEMS) -> Sequence[int]:
        """The refs or numbers of a list."""
        offset, count = at
        if count > most:
            self.refuse(f"a list of {count} items; at most {most}")
        return unpack(f"<{count}I", self._words(offset, 4 * count))

    def kind(self, ref: int) -> tuple[int, int]:
        """The kind and the size in bytes of a record."""
        kind, size = RECORD.unpack(self._words(ref, RECORD.size))
        if size < RECORD.size or size % ALIGN:
            self.refuse(f"a record of {size} bytes at {ref}")
        return int(kind), int(size)

    def record(self, ref: int, wanted: Kind) -> tuple[Fields, bytes]:
        """The fields of a record and the bytes after them."""
        kind, size = self.kind(ref)
        layout = FIELDS[wanted]
        if kind != wanted or size < RECORD.size + layout.size:
            self.refuse(f"record {ref} is of kind {kind}, {size} bytes; not {wanted.name.lower()}")
        data = self._words(ref, size)[RECORD.size :]
        return layout.unpack_from(data), data[layout.size :]

    def _words(self, offset: int, size: int) -> bytes:
        rows = self._rows[Section.RECORDS]
        if offset % ALIGN or offset + size > rows.size:
            self.refuse(f"{size} bytes at {offset} leave the records")
        return self.index.read(rows.offset + offset, size)


def _rows_between(low: bytes, high: bytes, count: int) -> int:
    """How many of some digests that are spread evenly lie between two."""
    apart = (int.from_bytes(high[:8]) - int.from_bytes(low[:8])) % 2**64
    return apart * count >> 64
