"""Frames: what is written is read, small sets go without a dictionary, sizes are held."""

from random import Random

import pytest

from kernelpack.bundle.frames import MIN_SAMPLES, Decompressor, compress, train
from kernelpack.errors import BundleError

BASE = Random(0).randbytes(4096)


def images(count, size=4096):
    """Images that have most of their bytes in common."""
    return [BASE[:size] + Random(n).randbytes(200) for n in range(count)]


@pytest.mark.parametrize("made", [[], [b""], [b"x"], images(3), images(40), [b""] * 40])
def test_what_is_written_is_read(made):
    """Images of any number and size come back."""
    dictionary = train(made)
    decompressor = Decompressor(dictionary)
    frames = compress(made, dictionary)
    read = [decompressor.decompress(f, len(i), "") for f, i in zip(frames, made, strict=True)]
    assert made == read


@pytest.mark.parametrize(
    "made", [[], images(MIN_SAMPLES - 1), images(40, size=8)], ids=["none", "few", "small"]
)
def test_no_dictionary(made):
    """Few or small images get no dictionary."""
    assert train(made) == b""


def test_a_dictionary_saves_what_images_share():
    """With a dictionary, what the images have in common is stored once."""
    made = images(40)
    dictionary = train(made)
    with_it = sum(map(len, compress(made, dictionary)))
    assert with_it + len(dictionary) < sum(map(len, compress(made, b""))) / 2


def test_training_is_deterministic():
    """The same images give the same dictionary and frames."""
    made = images(40)
    assert train(made) == train(list(made))
    assert compress(made, train(made)) == compress(made, train(made))


@pytest.mark.parametrize(("size", "cut", "more"), [(9, None, b""), (10, -1, b""), (10, None, b"x")])
def test_a_frame_is_exact(size, cut, more):
    """Another size, a cut frame, or bytes after it are refused."""
    (frame,) = compress([bytes(10)], b"")
    with pytest.raises(BundleError, match="the compressed frame"):
        Decompressor(b"").decompress(frame[:cut] + more, size, "x.kpk")


def test_another_dictionary():
    """A frame that needs a dictionary is refused without it."""
    made = images(40)
    frame = compress(made, train(made))[0]
    with pytest.raises(BundleError, match="cannot be read"):
        Decompressor(b"").decompress(frame, len(made[0]), "x.kpk")
