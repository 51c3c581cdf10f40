# ruff: noqa: E501  (bodies of kernels)
"""Operands of the tensor cores in shared memory, without a swizzle."""

import numpy as np

COPY_IN = """
  mov.u32 %r29, s; mov.u32 %r26, %thread;
CC: mad.wide.u32 %rd20, %r26, 4, %in; ld.global.b32 %r25, [%rd20]; mad.lo.u32 %r24, %r26, 4, %r29; st.shared.b32 [%r24], %r25;
  add.u32 %r26, %r26, 128; setp.lt.u32 %p14, %r26, 2048; @%p14 bra CC;
"""


def cores(matrix: np.ndarray) -> np.ndarray:
    """(rows, 16) bf16 as core matrices of 8 rows x 16 bytes, the two of a row group apart."""
    blocks = matrix.reshape(-1, 8, 2, 8).transpose(2, 0, 1, 3)
    return np.ascontiguousarray(blocks).view(np.uint32).reshape(-1)


def descriptor(register: str, offset: int, leading: int, stride: int, version: int = 1) -> str:
    """A descriptor without swizzle for the operand at `s + offset`."""
    rest = leading // 16 << 16 | stride // 16 << 32 | version << 46
    return f"add.u32 %r23, %r29, {offset}; shr.u32 %r23, %r23, 4; cvt.u64.u32 {register}, %r23; or.b64 {register}, {register}, {rest};"
