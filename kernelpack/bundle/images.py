"""The images of a bundle: found by digest, decompressed within their stated size, then checked."""

from bisect import bisect_left
from functools import cached_property
from hashlib import sha256

from kernelpack.bundle.format import DAMAGED, FRAME, MAX_IMAGE_BYTES, Section
from kernelpack.bundle.frames import Decompressor
from kernelpack.bundle.sections import Sections
from kernelpack.errors import BundleError


class Images:
    """The images that an index names, and where their frames lie.

    Args:
        sections: the index.
        frames: the part that says where each frame lies.
        images: the frames.
        dictionary: what they were written with.

    Raises:
        BundleError: from every method, where a frame or an image is not what the index says.

    """

    def __init__(
        self, sections: Sections, *, frames: memoryview, images: memoryview, dictionary: memoryview
    ) -> None:
        self._sections, self._frames, self._images = sections, frames, images
        self._dictionary = dictionary
        if len(frames) != FRAME.size * len(self):
            sections.refuse(f"a frame table of {len(frames)} bytes for {len(self)} images")

    def __len__(self) -> int:
        return self._sections.count(Section.IMAGES)

    @cached_property
    def _decompressor(self) -> Decompressor:
        return Decompressor(bytes(self._dictionary))

    def find(self, digest: str) -> bytes:
        """The image of a digest, lower-case hex.

        Raises:
            BundleError: there is none.

        """
        row = bisect_left(range(len(self)), digest, key=self._digest)
        if row == len(self) or self._digest(row) != digest:
            raise BundleError(f"no image of digest {digest}", where=self._sections.where)
        return self.read(row, f"{self._sections.where}: image {digest}")

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
        offset, size = FRAME.unpack_from(self._frames, row * FRAME.size)
        if offset + size > len(self._images):
            what = f"a frame of {size} bytes at {offset} leaves the images"
            raise BundleError(what, where=where, hint=DAMAGED)
        return bytes(self._images[offset : offset + size])

    def verify(self) -> None:
        """Check every image."""
        for row in range(len(self)):
            self.read(row, f"{self._sections.where}: image {self._digest(row)}")
