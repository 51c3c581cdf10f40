"""Every family of instructions: importing this fills the table."""

from kernelpack.emulator.semantics import (
    approximate,
    atomic,
    barrier,
    bit_fields,
    bitwise,
    bulk_copy,
    choice,
    cluster_launch,
    compare,
    control,
    convert,
    copy_async,
    floating,
    integer,
    matrix,
    mbarrier,
    memory,
    move,
    store_async,
    tcgen05,
    tensor_allocation,
    tensor_copy,
    tensor_memory,
    warp,
    wgmma,
)
from kernelpack.emulator.semantics.table import TABLE

find = TABLE.find
COPY = move.same
"""The handler that does nothing: a move by reference."""

__all__ = [
    "COPY",
    "approximate",
    "atomic",
    "barrier",
    "bit_fields",
    "bitwise",
    "bulk_copy",
    "choice",
    "cluster_launch",
    "compare",
    "control",
    "convert",
    "copy_async",
    "find",
    "floating",
    "integer",
    "matrix",
    "mbarrier",
    "memory",
    "move",
    "store_async",
    "tcgen05",
    "tensor_allocation",
    "tensor_copy",
    "tensor_memory",
    "warp",
    "wgmma",
]
