"""The images of a bundle: found by digest, decompressed within their stated size, then checked."""

from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256

from kernelpack.bundle.file import BundleFile
from kernelpack.bundle.format import (
    DAMAGED,
    DIGEST_BYTES,
    FRAME,
    MAX_DICTIONARY_BYTES,
    MAX_IMAGE_BYTES,
    Part,
    Section,
)
from kernelpack.bundle.frames import Decompressor
from kernelpack.bundle.header import Extent
from kernelpack.bundle.sections import Sections
from kernelpack.errors import BundleError


class Images:
    """The images that an index names, and where their frames lie.

    Args:
        file: the file.
        parts: where its parts lie.
        sections: its index.

    Raises:
        BundleError: from every method, where a frame or an image is not what the index says.

    """

    def __init__(self, file: BundleFile, parts: Mapping[int, Extent], sections: Sections) -> None:
        self._file, self._sections = file, sections
        self._frames, self._images = parts[Part.FRAMES], parts[Part.IMAGES]
        self._dictionary = parts[Part.DICTIONARY]
        if self._frames.size != FRAME.size * len(self):
            raise file.refuse(f"a frame table of {self._frames.size} bytes, {len(self)} images")

    def __len__(self) -> int:
        return self._sections.count(Section.IMAGES)

    @cached_property
    def _decompressor(self) -> Decompressor:
        if self._dictionary.size > MAX_DICTIONARY_BYTES:
            raise self._file.refuse(f"a dictionary of {self._dictionary.size} bytes")
        return Decompressor(self._file.read(self._dictionary.offset, self._dictionary.size))

    def find(self, digest: str) -> bytes:
        """The image of a digest, lower-case hex.

        Raises:
            BundleError: there is none.

        """
        where, row = self._sections.where, self._row(digest)
        if row is None:
            raise BundleError(f"no image of digest {digest}", where=where)
        return self.read(row, f"{where}: image {digest}")

    def holds(self, digest: str) -> bool:
        """Whether there is an image of a digest."""
        return self._row(digest) is not None

    def _row(self, digest: str) -> int | None:
        is_digest = len(digest) == 2 * DIGEST_BYTES and set(digest) <= set("0123456789abcdef")
        return self._sections.search(Section.IMAGES, bytes.fromhex(digest)) if is_digest else None

    def _digest(self, row: int) -> str:
        return str(self._sections.row(Section.IMAGES, row)[0].hex())

    def read(self, row: int, where: str) -> bytes:
        """An image, after its digest was checked."""
        digest, size = self._sections.row(Section.IMAGES, row)
        if size > MAX_IMAGE_BYTES:
            what = f"an image of {size} bytes; at most {MAX_IMAGE_BYTES}"
            raise BundleError(what, where=where, hint=DAMAGED)
        image = self._decompressor.decompress(self._frame(row, where), size, where)
        if sha256(image).digest() != digest:
            raise BundleError("the image is not what its digest says", where=where, hint=DAMAGED)
        return image

    def _frame(self, row: int, where: str) -> bytes:
        images = self._images
        offset, size = FRAME.unpack(self._frame_row(row))
        if offset + size > images.size:
            what = f"a frame of {size} bytes at {offset} leaves the images"
            raise BundleError(what, where=where, hint=DAMAGED)
        return self._file.read(images.offset + offset, size)

    def _frame_row(self, row: int) -> bytes:
        return self._file.read(self._frames.offset + row * FRAME.size, FRAME.size)

    def frame_bytes(self, row: int) -> int:
        """The bytes that an image takes in the file."""
        return int(FRAME.unpack(self._frame_row(row))[1])

    def verify(self) -> None:
        """Check every image."""
        for row in range(len(self)):
            self.read(row, f"{self._sections.where}: image {self._digest(row)}")
