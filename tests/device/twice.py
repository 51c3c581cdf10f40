"""A GPU that is pretended, on which the small kernel doubles numbers; and ways to be wrong."""

import ctypes
import os
import time
from functools import partial

import numpy as np

from kernelpack.kernels.registry import KERNELS
from kernelpack.runtime.driver import Driver
from tests.fakes.driver import FakeCuda, FakeDevice
from tests.verify import small

B200 = FakeDevice(name="NVIDIA B200", capability=(10, 0), sm_count=148)
ILLEGAL_ADDRESS = 700


class Twice(FakeCuda):
    """A device on which y = 2 x; then `spoil(cuda, y, x, n)`, whose answer is the launch's."""

    def __init__(self, spoil=None, **changes):
        super().__init__(devices=(B200,), **changes)
        self.signatures.update({small.variant(t).entry: small.variant(t).slots for t in (32, 64)})
        self.spoil = spoil

    def _launch(self, *arguments):
        code = super()._launch(*arguments)
        y, x, n = (self.launches[-1].number(index) for index in range(3))
        if not code:
            floats(y, n)[:] = 2 * floats(x, n)
        return code or (self.spoil(self, y, x, n) if self.spoil else 0) or 0


def floats(address, count):
    """Device memory as an array."""
    return np.frombuffer((ctypes.c_float * count).from_address(address), np.float32)


def by_tile(tile, spoil):
    """Spoil what the variant of one tile does."""

    def only(cuda, *arguments):
        ours = cuda.launches[-1].entry == small.variant(tile).entry
        return spoil(cuda, *arguments) if ours else 0

    return only


def right(_cuda, _y, _x, _n):
    """Nothing is spoilt."""


def fault(_cuda, _y, _x, _n):
    return ILLEGAL_ADDRESS


def die(_cuda, _y, _x, _n):
    os.abort()


def hang(_cuda, _y, _x, _n):
    time.sleep(600)


def wrong(_cuda, y, _x, n):
    floats(y, n)[n - 1] = 7


def before(_cuda, y, _x, _n):
    ctypes.memset(y - 1, 0, 1)


def after(_cuda, y, _x, n):
    ctypes.memset(y + 4 * n, 0, 1)


def into_input(_cuda, _y, x, _n):
    floats(x, 1)[0] = 3


def around_input(_cuda, _y, x, n):
    ctypes.memset(x + 4 * n, 0, 1)


def other_bits(cuda, y, _x, n):
    """An ulp up in every other launch: right, and not the same."""
    if len(cuda.launches) % 2:
        floats(y, n)[2:] = np.nextafter(floats(y, n)[2:], np.float32(np.inf))


def connect(spoil=None, tile=32):
    """What a child connects to: a module's function, so that it can be named across processes."""
    KERNELS.setdefault("twice", small.DEFINITION)
    return Driver(Twice(by_tile(tile, spoil) if spoil else None))


def connecting(spoil=None, tile=32):
    """`connect` of a GPU that is wrong in a way."""
    return partial(connect, spoil, tile)
