"""Weights as kernels round them to e4m3: below which maximum, and with what added before.

A kernel goes through a token's keys a tile at a time. With y_j log2 of a key's weight, but for the
maximum, M of a tile and d_j of a key's place in its tile:

    M    = ceil(max y_j of the tile)          where that y_j is above SLACK + M of the tile before;
                                              else M of the tile before
    w8_j = e4m3(2^(y_j + SHIFT - M) + d_j) * 2^(M - SHIFT)

M is an integer, so that sums follow a new one by a whole power of two and normal weights round
alike below any. Numbers of e4m3 below 2^-6 are evenly spaced, and long tails of small weights would
vanish or double: 2047 keys 2^-16 below the largest are 3 % of all. So d_j is a part of that space,
keys of a tile each another part, and a tail is right as a whole.

How many keys have one M, and how many have d_j of their own, differs between families of targets.
`kp/mla/softmax_e4m3.cuh` has the same in CUDA.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.kernels.sparse_mla_prefill.problem import LOG2E
from kernelpack.kernels.sparse_mla_prefill.rows import LARGEST, Doubles, Floats

Places = NDArray[np.int64]

SHIFT, SLACK = 6.0, 2.75
"""The largest weight of a new maximum is at most 2^SHIFT; of one that lags, 2^SLACK times that."""
STEP = 2.0**-9
"""The distance of e4m3 numbers below 2^-6."""
LEAST_SCALE = 1e-18
"""A row whose scale is less is rounded as if it were this: it keeps a weight, though no value."""
WEIGHED = 2.0**-21
"""The error of 2^x and of fp32 additions in a weight before it is rounded."""
_LOWEST = -float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """How kernels of a family go through the keys of a token.

    Attributes:
        keys: of a tile: they share a maximum.
        places: keys that have something of their own added; a power of two.

    """

    keys: int
    places: int

    def dither(self, places: Places) -> Doubles:
        """The addends to the weights of keys at these places of a token's list."""
        bits = self.places.bit_length() - 1
        spread = sum(((places >> bit & 1) << (bits - 1 - bit) for bit in range(bits)), 0 * places)
        return np.asarray(((spread + 0.5) / self.places - 0.5) * STEP)

    def maxima(self, y: Doubles, places: Places) -> Doubles:
        """The M of each key's tile [h, n], for keys at rising places."""
        firsts = np.flatnonzero(np.diff(places // self.keys, prepend=-1))
        counts = np.diff(np.append(firsts, len(places)))
        highest = np.fmax.reduceat(y, firsts, axis=1)
        maximum = np.full(len(y), _LOWEST)
        for tile, most in enumerate(highest.T):
            maximum = np.where(most > maximum + SLACK, np.ceil(most), maximum)
            highest[:, tile] = maximum
        return highest.repeat(counts, axis=1)


BLACKWELL = Tiles(keys=128, places=32)
HOPPER = Tiles(keys=64, places=64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """The keys of one token as its heads weigh them.

    Attributes:
        tiles: how they are gone through.
        places: of keys in the token's list, rising [n].
        scores: in units of log2 [h, n].
        scales: of rows [n].
        most: the integer that weights refer to in the end [h, 1].
        exact: weights, without their rows' scales [h, n].
        rounded: what multiplies the rows' codes [h, n].

    """

    tiles: Tiles
    places: Places
    scores: Doubles
    scales: Doubles
    most: Doubles
    exact: Doubles
    rounded: Doubles

    @classmethod
    def of(cls, scores: Doubles, scales: Doubles, places: Places, tiles: Tiles) -> "Weighed":
        """Weigh at least one key."""
        y = scores + np.log2(np.maximum(scales, LEAST_SCALE))
        maxima = tiles.maxima(y, places)
        last = maxima[:, -1:]
        most = np.where(last == _LOWEST, -np.inf, last)
        return cls(
            tiles=tiles,
            places=places,
            scores=scores,
            scales=scales,
            most=most,
            exact=np.exp2(scores - most),
            rounded=_rounded(y, maxima, tiles.dither(places), most),
        )

    @property
    def weights(self) -> Doubles:
        """Of the rows' codes, before they are rounded [h, n]."""
        return self.exact * self.scales

    def moved(self, error: Doubles) -> Doubles:
        """How far rounded weights are off at most where scores are, by `error` natural units.

        Next to nowhere: only where e4m3 rounds the other way, or a maximum is another integer.
        """
        others = [np.abs(other - self.rounded) for other in self._others(error * LOG2E)]
        return np.asarray(np.max(others, axis=0))

    def _others(self, error: Doubles) -> Iterator[Doubles]:
        """Rounded weights where all scores are higher, or all lower, and so may be maxima."""
        y = self.scores + np.log2(np.maximum(self.scales, LEAST_SCALE))
        dither = self.tiles.dither(self.places)
        less, more = (self.tiles.maxima(y + e, self.places) for e in (-error, error))
        for maxima in (less,) if np.array_equal(less, more) else (less, more):
            for e in (-error, error):
                yield _rounded(y + e, maxima, dither, self.most)


def _rounded(y: Doubles, maxima: Doubles, dither: Doubles, most: Doubles) -> Doubles:
    weights = np.exp2(y + SHIFT - maxima) + dither
    return e4m3(weights.astype(np.float32)) * np.exp2(maxima - SHIFT - most)


def e4m3(values: Floats) -> Doubles:
    """The nearest numbers of e4m3, saturating."""
    narrow = np.clip(values, -LARGEST, LARGEST).astype(DType.E4M3.numpy)
    return np.asarray(narrow.astype(np.float64))
