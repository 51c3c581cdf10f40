"""Frames and documents made to hurt, under digests that are right. Each is refused."""

import struct
import tracemalloc
from hashlib import sha256

import pytest
import zstandard

from kernelpack.bundle.format import (
    MAX_IMAGE_BYTES,
    Kind,
    Section,
)
from kernelpack.bundle.reader import open_bundle
from kernelpack.errors import BundleError
from tests.bundle.forge import (
    contents_of,
    forge,
    poke_record,
    poke_row,
    reseal,
)


def compress(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def test_a_bomb(bundle_path):
    """A frame that would grow to a gigabyte is refused before memory is taken."""
    frames = contents_of(bundle_path).frames
    bomb = (
        zstandard.ZstdCompressor()
        .compress(bytes(1 << 26))
        .replace(struct.pack("<I", 1 << 26), struct.pack("<I", 1 << 30), 1)
    )
    reseal(bundle_path, frames=(bomb,) * len(frames))
    bundle = open_bundle(bundle_path)
    wanted = bundle.records()[0].id
    tracemalloc.start()
    with pytest.raises(BundleError, match="where the index says"):
        bundle.image(wanted)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_documents_of_nobody(bundle_path):
    """A frame of millions of documents costs no more memory than the bytes that it states."""
    lines = b"\n" * (8 << 20)

    def edit(index: bytearray) -> None:
        struct.pack_into("<Q32s", index, 16, len(lines), sha256(lines).digest())

    forge(bundle_path, edit)
    reseal(bundle_path, documents=compress(lines))
    bundle = open_bundle(bundle_path)
    tracemalloc.start()
    with pytest.raises(BundleError, match="8388608 documents of"):
        bundle.documents()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * len(lines)


@pytest.mark.parametrize(
    ("frame", "what"),
    [
        (compress(b"other"), "frame holds 5 bytes where the index says"),
        (b"", "cannot be read"),
        (b"not zstd", "cannot be read"),
        (zstandard.ZstdCompressor(write_content_size=False).compress(b"x"), "holds -1 bytes"),
    ],
)
def test_an_absurd_frame(bundle_path, frame, what):
    """Frames that hold something else, or nothing, are refused."""
    frames = contents_of(bundle_path).frames
    reseal(bundle_path, frames=(frame,) * len(frames))
    bundle = open_bundle(bundle_path)
    with pytest.raises(BundleError, match=what):
        bundle.image(bundle.records()[0].id)


def test_another_image(bundle_path):
    """A frame of the right size with other bytes is refused by its digest."""
    contents = contents_of(bundle_path)
    bundle = open_bundle(bundle_path)
    sizes = [r.image_bytes for r in sorted(bundle.records(), key=lambda r: r.image_digest)]
    reseal(bundle_path, frames=tuple(compress(bytes(size)) for size in sizes), dictionary=b"")
    assert len(contents.frames) == len(sizes)
    bundle = open_bundle(bundle_path)
    with pytest.raises(BundleError, match="the image is not what its digest says"):
        bundle.image(bundle.records()[0].id)


def test_an_absurd_image_size(bundle_path):
    """An image above the format's limit is refused before anything is read."""
    forge(bundle_path, poke_row(Section.IMAGES, 0, 1, MAX_IMAGE_BYTES + 1))
    with pytest.raises(BundleError, match="an image of"):
        open_bundle(bundle_path).verify_all()


def test_documents_that_lie(bundle_path):
    """JSON for people that differs from the records for programs is found."""
    forge(bundle_path, poke_record(Kind.VARIANT, 17, 1234))
    with pytest.raises(BundleError, match="is not what its records say"):
        open_bundle(bundle_path).verify_all()
