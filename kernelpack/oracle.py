"""The tools of your own kernel's oracle; `kernels.oracle` says how."""

from kernelpack.kernels.definition import Arrays, Definition, Expected
from kernelpack.kernels.expect import exactly, normal, numpy_type, within
from kernelpack.kernels.oracle import every

__all__ = [
    "Arrays",
    "Definition",
    "Expected",
    "every",
    "exactly",
    "normal",
    "numpy_type",
    "within",
]
