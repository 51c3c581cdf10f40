"""Error maps as PNG."""

import struct
from zlib import crc32, decompress

import pytest

from kernelpack.verify.compare import NOT_A_NUMBER, WITHIN, ErrorMap
from kernelpack.verify.picture import GAP, data_uri, palette, png

MAP = ErrorMap(shape=(2, 2, 3), levels=bytes([0, 1, 2, 3, 4, 5, 200, 201, 254, 255, 0, 0]))


def chunks(data):
    """Kind and body of each chunk, after its checksum was checked."""
    at, found = 8, {}
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size) == (crc32(kind + body),)
        found[kind], at = body, at + 12 + size
    return found


def test_shape():
    """Planes lie side by side with a gap between them."""
    width, height, bits, kind = struct.unpack_from(">IIBB", chunks(png(MAP))[b"IHDR"])
    assert (width, height, bits, kind) == (3 + GAP + 3, 2, 8, 3)


def test_pixels():
    """A row is its filter byte, then a level a pixel; the gap's level is taken from no pixel."""
    rows = decompress(chunks(png(MAP))[b"IDAT"])
    assert list(rows) == [0, 0, 1, 2, 254, 254, 200, 201, 253, 0, 3, 4, 5, 254, 254, 255, 0, 0]


def colour(level):
    return tuple(palette()[3 * level : 3 * level + 3])


@pytest.mark.parametrize(("level", "expected"), [(0, (255, 255, 255)), (NOT_A_NUMBER, (0, 0, 0))])
def test_colours(level, expected):
    """No error is white, NaN black."""
    assert colour(level) == expected


def test_wrong_is_red():
    """Within the bound blue is the strongest colour, beyond it red."""
    assert colour(WITHIN)[2] == max(colour(WITHIN))
    assert colour(WITHIN + 1)[0] == max(colour(WITHIN + 1))


def test_uri():
    """A page can hold it."""
    assert data_uri(MAP).startswith("data:image/png;base64,iVBOR")
