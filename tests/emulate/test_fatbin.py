"""Fat binaries: which texts they hold, and what is refused of them."""

import pytest

from kernelpack.emulate.fatbin import ptx_texts, split
from kernelpack.errors import UnsupportedError
from tests.emulate.images import LZ4, MACHINE_CODE, PTX, UNCOMPRESSED, ZSTANDARD, fat_binary


def test_every_text_is_found():
    """Texts come in their order, without the zero bytes that pad them; machine code is passed."""
    image = fat_binary(
        (MACHINE_CODE, UNCOMPRESSED, b"\x7fELF"),
        (PTX, UNCOMPRESSED, b"first\0\0"),
        (PTX, UNCOMPRESSED, b"second"),
    )
    assert ptx_texts(image) == ("first", "second")


def test_a_text_is_its_own_image():
    """A driver program may load a PTX text as it is."""
    assert ptx_texts(b".version 8.6\0") == (".version 8.6",)


def test_images_of_a_section():
    """They lie one after the other, padded; the number of one may be in another's text."""
    first = fat_binary((PTX, UNCOMPRESSED, b"first \x50\xed\x55\xba"))
    second = fat_binary((PTX, UNCOMPRESSED, b"second"))
    assert split(first + b"\0" * 6 + second) == (first, second)
    assert split(b"\0" * 64) == ()


@pytest.mark.parametrize(
    ("image", "says"),
    [
        (fat_binary((PTX, LZ4, b"x")), "compressed PTX\nhint: compile with --compress-mode=none"),
        (fat_binary((PTX, ZSTANDARD, b"x")), "compressed PTX"),
        (fat_binary((MACHINE_CODE, UNCOMPRESSED, b"x")), "a fat binary without PTX"),
        (fat_binary(), "a fat binary without PTX"),
        (b"\x7fELF\x02", "a module of machine code alone"),
        (fat_binary((PTX, UNCOMPRESSED, b"x"))[:40], "a damaged fat binary"),
    ],
)
def test_an_image_without_plain_ptx_is_refused(image, says):
    """What the emulator cannot run is refused by name."""
    with pytest.raises(UnsupportedError) as error:
        ptx_texts(image)
    assert says in str(error.value)
