"""Fragments: which element of a matrix each register of each thread of a warp holds.

All shapes follow one scheme: thread t serves row t / 4 of an 8-row group, and the four threads of a
row split it into runs as wide as a register. Matrices here hold codes (bit patterns), not numbers.
Sources: PTX ISA 9.1, 9.7.14.5.1-13 (mma), 9.7.15.5.1 (wgmma), 9.7.14.5.15-17 (ldmatrix, stmatrix,
movmatrix).
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Index = npt.NDArray[np.intp]
Codes = npt.NDArray[Any]

_THREAD = np.arange(32)
_GROUP, _MEMBER = _THREAD // 4, _THREAD % 4


@dataclass(frozen=True, eq=False, kw_only=True)
class Fragment:
    """`rows` and `columns` are (registers, elements a register, 32 threads), lowest bits first."""

    rows: Index
    columns: Index
    bits: int
    shape: tuple[int, int]

    def matrix(self, registers: Codes) -> Codes:
        """Codes of the matrix from (registers, 32) registers."""
        if self.bits >= 32:
            codes = registers[:, None]
        else:
            codes = registers[:, None] >> self._shifts() & np.uint32((1 << self.bits) - 1)
        matrix = np.zeros(self.shape, registers.dtype)
        matrix.reshape(-1)[self._places] = codes
        return matrix

    def registers(self, matrix: Codes) -> Codes:
        """(registers, 32) registers from codes: uint32, or uint64 of 64 bits."""
        kind = np.uint64 if self.bits == 64 else np.uint32
        codes = matrix.reshape(-1).take(self._places).astype(kind, copy=False)
        if self.bits >= 32:
            return codes[:, 0]
        registers: Codes = np.bitwise_or.reduce(codes << self._shifts(), axis=1)
        return registers

    @cached_property
    def _places(self) -> Index:
        """Where each element is in the flat matrix."""
        return self.rows * self.shape[1] + self.columns

    def _shifts(self) -> Codes:
        """Where the elements are in a register: (elements, 1)."""
        return np.uint32(self.bits) * np.arange(self.rows.shape[1], dtype=np.uint32)[:, None]


@lru_cache(maxsize=64)
def a_fragment(m: int, k: int, bits: int) -> Fragment:
    """A of mma (and of one warp of wgmma): (m, k), row major."""
    per_register = max(32 // bits, 1)
    row_groups = m // 8
    register = np.arange(m * k // 32 // per_register)[:, None, None]
    element = np.arange(per_register)[:, None]
    rows = _GROUP + 8 * (register % row_groups) + 0 * element
    columns = per_register * (_MEMBER + 4 * (register // row_groups)) + element
    return Fragment(rows=rows, columns=columns, bits=bits, shape=(m, k))


@lru_cache(maxsize=64)
def b_fragment(k: int, bits: int) -> Fragment:
    """B of mma as (8, k): row n of the matrix here is column n of B."""
    return a_fragment(8, k, bits)


@lru_cache(maxsize=64)
def d_fragment(m: int, n: int, bits: int) -> Fragment:
    """C and D of mma (m, 8) and of one warp of wgmma (16, n): pairs of neighbours in a row."""
    per_register = 2 if bits == 16 else 1
    pairs = m // 8 * (n // 8)
    pair, half = np.divmod(np.arange(2 * pairs).reshape(-1, per_register), 2)
    pair, half = pair[..., None], half[..., None]
    rows = _GROUP + 8 * (pair % (m // 8)) + 0 * half
    columns = 8 * (pair // (m // 8)) + 2 * _MEMBER + half
    return Fragment(rows=rows, columns=columns, bits=bits, shape=(m, n))


def load_matrices(rows: npt.NDArray[np.uint8], *, transpose: bool) -> Codes:
    """Registers of `ldmatrix.m8n8.b16`: (8 x count rows, 16 bytes) -> (count, 32)."""
    elements = np.ascontiguousarray(rows).view(np.uint16).reshape(-1, 8, 8)
    if transpose:
        elements = elements.transpose(0, 2, 1)
    fragment = a_fragment(8, 8, 16)
    return np.concatenate([fragment.registers(matrix) for matrix in elements])


def store_matrices(registers: Codes, *, transpose: bool) -> npt.NDArray[np.uint8]:
    """Rows of `stmatrix.m8n8.b16`: (count, 32) -> (8 x count rows, 16 bytes)."""
    fragment = a_fragment(8, 8, 16)
    matrices = np.stack([fragment.matrix(register[None]) for register in registers])
    if transpose:
        matrices = matrices.transpose(0, 2, 1)
    return np.ascontiguousarray(matrices.astype(np.uint16)).view(np.uint8).reshape(-1, 16)


def transpose_matrix(registers: Codes) -> Codes:
    """`movmatrix.m8n8.trans.b16`: one register a thread -> (32,)."""
    fragment = a_fragment(8, 8, 16)
    moved: Codes = fragment.registers(fragment.matrix(registers[None]).T)[0]
    return moved
