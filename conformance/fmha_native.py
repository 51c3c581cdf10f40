"""Example 77's comparison, for `kernelpack emulate --native`: the greatest difference and the sum.

The kernel's parameters are (data, reference, count, greatest, sum, print), the first two f16 or
f32. NaN counts as it does there: it is in the sum, and never the greatest.
"""

import struct

import numpy as np

from kernelpack.emulate.arena import Arena


def _compare(arena: Arena, parameters: bytes, dtype: type[np.floating]) -> None:
    data, reference, count, greatest, total = struct.unpack_from("<5Q", parameters)
    got, want = (
        arena.memory.read(address, count * np.dtype(dtype).itemsize).view(dtype).astype(np.float64)
        for address in (data, reference)
    )
    difference = np.where(got == want, 0.0, np.abs(got - want))
    old = (arena.memory.read(address, 8).view(np.float64)[0] for address in (greatest, total))
    found = (np.fmax(next(old), np.fmax.reduce(difference)), next(old) + difference.sum())
    for address, value in zip((greatest, total), found, strict=True):
        arena.memory.write_bytes(address, struct.pack("<d", value))


def compare_half(arena: Arena, parameters: bytes) -> None:
    """The comparison of f16."""
    _compare(arena, parameters, np.float16)


def compare_float(arena: Arena, parameters: bytes) -> None:
    """The comparison of f32."""
    _compare(arena, parameters, np.float32)


KERNELS = {
    "*reference_abs_diff_kernel*half_t*": compare_half,
    "*reference_abs_diff_kernelIKf*": compare_float,
}
