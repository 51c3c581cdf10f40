"""An error map as a PNG: each plane beside the last, a pixel a level. PNG by its specification.

Right elements go from white (no error) to blue (all of the bound); wrong ones from orange to red;
NaN is black. Colours are a palette, so that a map of a plane is a few hundred bytes.
"""

import struct
from base64 import b64encode
from zlib import compress, crc32

import numpy as np
from numpy.typing import NDArray

from kernelpack.verify.compare import NOT_A_NUMBER, WITHIN, ErrorMap

GAP = 2
_BACKGROUND = 254
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_INDEXED = 3


def png(picture: ErrorMap) -> bytes:
    """The planes of a map, from left to right."""
    image = _beside(picture)
    rows = np.pad(image, ((0, 0), (1, 0)))  # a filter byte of 0 before each row
    header = struct.pack(">IIBBBBB", image.shape[1], image.shape[0], 8, _INDEXED, 0, 0, 0)
    return b"".join(
        (
            _SIGNATURE,
            _chunk(b"IHDR", header),
            _chunk(b"PLTE", palette()),
            _chunk(b"IDAT", compress(rows.tobytes(), 9)),
            _chunk(b"IEND", b""),
        )
    )


def data_uri(picture: ErrorMap) -> str:
    """The picture as text that a page can hold."""
    return f"data:image/png;base64,{b64encode(png(picture)).decode()}"


def palette() -> bytes:
    """Red, green and blue of each level."""
    level = np.arange(256)
    share = np.minimum(level / WITHIN, 1.0)
    within = np.stack([255 - 215 * share, 255 - 155 * share, 255 - 35 * share], 1)
    beyond = np.clip((level - WITHIN) / (_BACKGROUND - WITHIN), 0, 1)
    wrong = np.stack([255 - 55 * beyond, 150 - 150 * beyond, 30 - 30 * beyond], 1)
    colours = np.where((level > WITHIN)[:, None], wrong, within).astype(np.uint8)
    colours[_BACKGROUND] = (235, 235, 235)
    colours[NOT_A_NUMBER] = (0, 0, 0)
    return colours.tobytes()


def _beside(picture: ErrorMap) -> NDArray[np.uint8]:
    """The planes in a row, a gap between them."""
    planes = np.frombuffer(picture.levels, np.uint8).reshape(picture.shape)
    planes = np.where(planes == _BACKGROUND, _BACKGROUND - 1, planes).astype(np.uint8)
    gap = np.full((planes.shape[1], GAP), _BACKGROUND, np.uint8)
    parts = [part for plane in planes for part in (gap, plane)][1:]
    return np.concatenate(parts, axis=1)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc32(kind + data))
