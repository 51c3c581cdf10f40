"""Fragments against the row and column formulas of PTX ISA 9.1, 9.7.14.5."""

import numpy as np
import pytest

from kernelpack.emulator.models.fragments import (
    a_fragment,
    b_fragment,
    d_fragment,
    load_matrices,
    store_matrices,
    transpose_matrix,
)

THREAD = np.arange(32)
GROUP, MEMBER = THREAD // 4, THREAD % 4

# The manual's formulas: element i of a thread -> (row, column), by fragment.
A_FORMULAS = {
    (16, 16, 16): lambda i: (GROUP + 8 * (i // 2 % 2), 2 * MEMBER + i % 2 + 8 * (i >= 4)),
    (16, 8, 16): lambda i: (GROUP + 8 * (i >= 2), 2 * MEMBER + i % 2),
    (16, 32, 8): lambda i: (GROUP + 8 * (i // 4 % 2), 4 * MEMBER + i % 4 + 16 * (i >= 8)),
    (16, 16, 8): lambda i: (GROUP + 8 * (i >= 4), 4 * MEMBER + i % 4),
    (16, 8, 32): lambda i: (GROUP + 8 * (i % 2), MEMBER + 4 * (i >= 2)),
    (16, 4, 32): lambda i: (GROUP + 8 * i, MEMBER),
    (8, 16, 8): lambda i: (GROUP, 4 * MEMBER + i),
    (8, 4, 64): lambda i: (GROUP, MEMBER + 0 * i),
    (16, 4, 64): lambda i: (GROUP + 8 * i, MEMBER),
    (16, 8, 64): lambda i: (GROUP + 8 * (i % 2), MEMBER + 4 * (i >= 2)),
    (16, 16, 64): lambda i: (GROUP + 8 * (i % 2), MEMBER + 4 * (i // 2)),
}
B_FORMULAS = {
    (16, 16): lambda i: 2 * MEMBER + i % 2 + 8 * (i >= 2),
    (32, 8): lambda i: 4 * MEMBER + i % 4 + 16 * (i >= 4),
    (8, 32): lambda i: MEMBER + 4 * i,
}


def elements(fragment):
    """Rows and columns with registers and their elements as one list."""
    return fragment.rows.reshape(-1, 32), fragment.columns.reshape(-1, 32)


@pytest.mark.parametrize("shape", A_FORMULAS)
def test_a(shape):
    """A, element by element."""
    rows, columns = elements(a_fragment(*shape))
    expected = [A_FORMULAS[shape](i) for i in range(len(rows))]
    assert np.array_equal([row for row, _ in expected], rows)
    assert np.array_equal([column for _, column in expected], columns)


@pytest.mark.parametrize("shape", B_FORMULAS)
def test_b(shape):
    """B: a thread's group is its column."""
    columns, depth = elements(b_fragment(*shape))
    assert np.array_equal([B_FORMULAS[shape](i) for i in range(len(depth))], depth)
    assert (columns == GROUP).all()


@pytest.mark.parametrize(("m", "bits"), [(16, 32), (16, 16), (8, 32)])
def test_d(m, bits):
    """C and D: two neighbours in a row, then 8 rows further."""
    rows, columns = elements(d_fragment(m, 8, bits))
    i = np.arange(len(rows))[:, None]
    assert np.array_equal(GROUP + 8 * (i >= 2), rows)
    assert np.array_equal(2 * MEMBER + i % 2, columns)


def test_wgmma_d():
    """Register 4j + 2h + q of wgmma: row + 8h, column 8j + 2(t % 4) + q."""
    rows, columns = elements(d_fragment(16, 32, 32))
    j, h, q = np.unravel_index(np.arange(16)[:, None], (4, 2, 2))
    assert np.array_equal(GROUP + 8 * h, rows)
    assert np.array_equal(8 * j + 2 * MEMBER + q, columns)


FRAGMENTS = [
    *(a_fragment(*shape) for shape in A_FORMULAS),
    *(b_fragment(*shape) for shape in B_FORMULAS),
    *(d_fragment(16, n, bits) for n in (8, 64, 256) for bits in (16, 32)),
]


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_every_element_has_one_place(fragment):
    """Matrix to registers and back is the identity: a fragment is a bijection."""
    kind = np.uint64 if fragment.bits == 64 else np.uint32
    most = (1 << fragment.bits) - 1
    codes = np.random.default_rng(1).integers(0, most, fragment.shape, kind, endpoint=True)
    assert np.array_equal(codes, fragment.matrix(fragment.registers(codes)))


def test_load_matrices():
    """Thread t gets row t / 4, columns 2 (t % 4) and the next."""
    matrix = np.arange(64, dtype=np.uint16).reshape(8, 8)
    expected = matrix.view(np.uint32).reshape(32)
    assert np.array_equal([expected], load_matrices(matrix.view(np.uint8), transpose=False))


def test_load_matrices_transposed():
    """.trans gives thread t the column t / 4."""
    matrix = np.arange(64, dtype=np.uint16).reshape(8, 8)
    expected = np.ascontiguousarray(matrix.T).view(np.uint32).reshape(32)
    assert np.array_equal([expected], load_matrices(matrix.view(np.uint8), transpose=True))


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_store_undoes_load(count, transpose):
    """stmatrix puts back what ldmatrix took."""
    rows = np.random.default_rng(2).integers(0, 256, (8 * count, 16)).astype(np.uint8)
    registers = load_matrices(rows, transpose=transpose)
    assert registers.shape == (count, 32)
    assert np.array_equal(rows, store_matrices(registers, transpose=transpose))


def test_transpose_matrix():
    """movmatrix is a load, transposed."""
    rows = np.random.default_rng(3).integers(0, 256, (8, 16)).astype(np.uint8)
    (plain,), (moved,) = (load_matrices(rows, transpose=t) for t in (False, True))
    assert np.array_equal(moved, transpose_matrix(plain))
