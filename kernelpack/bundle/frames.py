"""The one door to zstd: train a dictionary, write frames, read frames of a size known before.

Frames depend on the version of zstd; what they hold does not, and is checked by digest elsewhere.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import zstandard

from kernelpack.bundle.format import DAMAGED
from kernelpack.errors import BundleError

COMPRESSOR = zstandard.ZSTD_VERSION[0] * 10_000 + zstandard.ZSTD_VERSION[1] * 100
COMPRESSOR += zstandard.ZSTD_VERSION[2]
"""The version of zstd as its own number: 1.5.7 is 10507."""

LEVEL, QUICK = 19, 12
"""How hard zstd tries, of levels to 22: hard for what is shipped, machine code; not so for PTX and
documents. Of 202 variants (17 MB of machine code, 72 MB of PTX) PTX takes a core 34 s at 19, for
5.2 MB, and 3 s at 12, for 5.9 MB; machine code 8 s at 19, and 13 % more bytes at 12."""

DICTIONARY_BYTES = 256 << 10
MIN_SAMPLES = 16
SAMPLE_BYTES = 24 << 20
SEGMENT_BYTES, MATCH_BYTES, TRAINING_LEVEL = 1000, 8, 3
"""How to train. Left to itself zstd tries many of these: on 126 real cubins (6.8 MB) that took 15 s
for a total of 964 KB; these take 0.15 s for 861 KB, without a dictionary it is 1571 KB."""


def train(images: Sequence[bytes]) -> bytes:
    """A dictionary for the images; empty where there are too few to learn from."""
    samples = _samples(images)
    size = min(DICTIONARY_BYTES, sum(map(len, samples)) // 10)
    if len(samples) < MIN_SAMPLES or size < 1024:
        return b""
    try:
        trained = zstandard.train_dictionary(
            size, samples, k=SEGMENT_BYTES, d=MATCH_BYTES, level=TRAINING_LEVEL
        )
    except zstandard.ZstdError:
        return b""  # zstd's way to say that the samples have nothing in common
    return trained.as_bytes()


def _samples(images: Sequence[bytes]) -> list[bytes | bytearray | memoryview]:
    """Evenly spaced images, at most `SAMPLE_BYTES` of them: training reads all its samples."""
    total = sum(map(len, images))
    step = max(1, -(-total // SAMPLE_BYTES))
    return list(images[::step])


def compress(images: Sequence[bytes], dictionary: bytes, level: int = LEVEL) -> list[bytes]:
    """A frame for each image, in order; every frame states the size of what it holds."""
    trained = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
    if trained:
        trained.precompute_compress(level=level)

    def frame(image: bytes) -> bytes:
        """By a compressor of its own, for none serves two threads; the dictionary serves all."""
        return zstandard.ZstdCompressor(level=level, dict_data=trained).compress(image)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        return list(threads.map(frame, images))


class Decompressor:
    """Reads frames that were written with one dictionary. Safe to share between threads."""

    def __init__(self, dictionary: bytes) -> None:
        self._dictionary = zstandard.ZstdCompressionDict(dictionary) if dictionary else None

    def decompress(self, frame: bytes, size: int, where: str) -> bytes:
        """The contents of a frame.

        Args:
            frame: exactly one frame.
            size: the bytes it must hold; no more are ever allocated.
            where: the file and what the frame is, for messages.

        Raises:
            BundleError: the frame is damaged or holds another number of bytes.

        """
        try:
            stated = zstandard.frame_content_size(frame)
            if stated != size:
                what = f"the compressed frame holds {stated} bytes where the index says {size}"
                raise BundleError(what, where=where, hint=DAMAGED)
            reader = zstandard.ZstdDecompressor(dict_data=self._dictionary)
            return reader.decompress(frame, max_output_size=size, allow_extra_data=False)
        except zstandard.ZstdError as error:
            what = f"the compressed frame cannot be read: {error}"
            raise BundleError(what, where=where, hint=DAMAGED) from error
