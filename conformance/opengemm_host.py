"""A host program for a kernel that opengemm emitted: `opengemm_host.py LIBRARY ELEMENT SIZE`.

Multiplies two random matrices on the device and compares with float64; prints `right` or `wrong`.
"""

import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from conformance.device import Device
from kernelpack.formats import narrow, packing, scale_layout
from kernelpack.formats.dtype import DType

BLOCK = 16
"""Elements that share a scale in nvfp4."""

Operand = tuple[NDArray[Any], NDArray[Any] | None, NDArray[np.float64]]
"""The codes as stored, the scales as stored, and the values they stand for."""


def dense(element: str, size: int, rng: np.random.Generator) -> Operand:
    """A matrix of bf16 or e4m3."""
    dtype = DType.parse(element)
    values = rng.standard_normal((size, size)).astype(np.float32)
    codes = narrow.encode(dtype, values, satfinite=dtype.bits == 8)
    stored = codes.astype(np.uint16 if dtype.bits == 16 else np.uint8)
    return stored, None, narrow.decode(dtype, stored).astype(np.float64)


def nvfp4(size: int, rng: np.random.Generator) -> Operand:
    """A matrix of e2m1 with a ue4m3 scale for every 16 elements of a row."""
    four, scale = DType.parse("e2m1"), DType.parse("ue4m3")
    values = 2 * rng.standard_normal((size, size)).astype(np.float32)
    codes = narrow.encode(four, values, satfinite=True).astype(np.uint8)
    factors = rng.uniform(0.25, 2, (size, size // BLOCK)).astype(np.float32)
    scales = narrow.encode(scale, factors, satfinite=True).astype(np.uint8)
    of_each = np.repeat(narrow.decode(scale, scales).astype(np.float64), BLOCK, axis=1)
    meant = narrow.decode(four, codes).astype(np.float64) * of_each
    return packing.pack(codes, 4), scale_layout.to_atoms(scales), meant


def main(library: str, element: str, size_text: str) -> int:
    """Run the kernel; 0 if its result is right."""
    size, rng, device = int(size_text), np.random.default_rng(1), Device()
    scaled = element == "nvfp4"
    a, b = ((nvfp4(size, rng) if scaled else dense(element, size, rng)) for _ in range(2))
    out = np.zeros((size, size), np.uint16 if scaled else np.float32)
    result = device.room(out.nbytes)
    scales = [device.put(s) for s in (a[1], b[1]) if s is not None]
    name = f"{'smm' if scaled else 'mm'}_{element}_{size}_{size}_{size}"
    kernel = getattr(ctypes.CDLL(library), name)
    kernel(device.put(a[0]), device.put(b[0]), *scales, result, None)
    device.get(result, out)
    got = narrow.decode(DType.BF16, out) if scaled else out
    return _compare(got.astype(np.float64), a[2], b[2], 2.0**-8 if scaled else 0.0)


def _compare(
    got: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64], rounding: float
) -> int:
    """Check a product against float64: the sum's error, and that of the result's own rounding."""
    want, size = a @ b.T, np.abs(a) @ np.abs(b).T
    is_right = bool((np.abs(got - want) <= 1e-6 * size + rounding * np.abs(want)).all())
    sys.stdout.write("right\n" if is_right else "wrong\n")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
