"""Hints where a compiler refuses: headers of the host, and their replacements.

Kernels are compiled by NVRTC, which has no headers of a host. The CUDA toolkit has most of the
standard library under `cuda/std/`.
"""

import re

from kernelpack.errors import CompileError

_ABSENT = re.compile(r'cannot open source file "([^"]+)"')

_STD = (
    *("algorithm", "array", "bit", "cassert", "cfloat", "chrono", "climits", "cmath", "complex"),
    *("concepts", "cstddef", "cstdint", "cstdlib", "cstring", "expected", "functional"),
    *("initializer_list", "iterator", "limits", "numbers", "numeric", "optional", "ratio", "span"),
    *("tuple", "type_traits", "utility", "variant"),
)
_OF_C = ("assert", "float", "limits", "math", "stddef", "stdint", "stdlib", "string")

STANDS_FOR = {
    **{name: f"cuda/std/{name}" for name in _STD},
    **{f"{name}.h": f"cuda/std/c{name}" for name in _OF_C},
    "atomic": "cuda/atomic",
    "barrier": "cuda/barrier",
    "complex.h": "cuda/std/complex",
    "cub/cub.cuh": "cub/block/block_reduce.cuh",
    "mutex": "cuda/semaphore",
}
"""A header that a kernel cannot include → one of the toolkit in its place."""

NONE = {
    "cstdio": "printf needs no header in a kernel",
    "stdio.h": "printf needs no header in a kernel",
    "iostream": "a kernel prints by printf, which needs no header",
    "string": "there is no std::string in a kernel",
    "vector": "a kernel's memory is its arguments: give an array of the manifest",
    "memory": "a kernel's memory is its arguments: give an array of the manifest",
    "thread": "a kernel's threads are those of its launch",
    "cuda.h": "the driver's calls are the host's; a tensor map is `map:` in the manifest",
    "cute/tensor.hpp": "CUTLASS is not among the headers of a build; kernelpack's own are <kp/…>",
    "cutlass/cutlass.h": "CUTLASS is not among the headers of a build; kernelpack's own are <kp/…>",
}
"""A header that nothing stands for → what is done without it."""


def hinted(error: CompileError) -> CompileError:
    """The error with what would be right, where that is known."""
    advice = _advice(error.what)
    hint = "\n".join(filter(None, [advice, error.hint]))
    return CompileError(error.what, where=error.where, hint=hint) if advice else error


def _advice(what: str) -> str:
    if "cub.cuh> is not supported" in what:
        return "include the parts that you use, such as <cub/block/block_reduce.cuh>"
    found = _ABSENT.search(what)
    if not found:
        return ""
    name = found[1]
    return f"#include <{STANDS_FOR[name]}>" if name in STANDS_FOR else NONE.get(name, "")
