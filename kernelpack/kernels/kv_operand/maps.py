"""Tensor maps over a KV operand: what each constructor describes, to the byte.

A manifest writes the same out as plain dims, strides and box (`manifests/sparse_mla_prefill.yaml`);
these functions are what is meant, and what tests check the TMA unit against. Dimension 0 is
innermost. Rows and columns outside a tensor read as zeros; virtual rows end with the last page, so
that a map over one layer never reaches past the cache.

| map | dims | box | in shared memory |
|---|---|---|---|
| `tile` | depth, heads, rows | column block, 1, run of rows | column blocks, each [rows x block] |
| `ragged_tile` | depth, tile rows, (rows + 1) * heads | column block, tile rows, 1 | likewise |
| `scale_tile` | rows, heads | rows, 1 | fp32 of each row |
| `rope_tile` | rope, 1, rows | column block, 1, run of rows | as `tile`, bf16 |
| `gather4` | width, rows | column group, 1 | column groups, each [rows x group] |
| `rope_gather4` | rope, rows | column group, 1 | likewise, bf16 |

A column block is as wide as the swizzle; without one it is the whole width. gather4 exists on
Blackwell alone; Hopper gathers by pointers.
"""

from kernelpack.errors import ProblemError, TensorMapError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.storage import Storage
from kernelpack.spec.tensormap import (
    BITS,
    SPAN_BYTES,
    Element,
    Promotion,
    Swizzle,
    TensorMap,
    check,
)

_ELEMENTS = {DType.BF16: Element.BF16, DType.FP16: Element.FP16, DType.FP32: Element.FP32}
_UNSIGNED = {8: Element.U8, 16: Element.U16, 32: Element.U32, 64: Element.U64}
"""Types that the TMA unit has by name, and by the bits of the others."""

UNSWIZZLED_BYTES = 16
"""The unit of a row's width without a swizzle."""


def padded_depth(element: Element, swizzle: Swizzle, depth: int) -> int:
    """Elements of a head in shared memory: whole column blocks."""
    block = block_width(element, swizzle) or UNSWIZZLED_BYTES * 8 // BITS[element]
    return -(-depth // block) * block


def block_width(element: Element, swizzle: Swizzle) -> int:
    """Elements of a column block; 0 without a swizzle, where it is the whole width."""
    if swizzle is Swizzle.NONE:
        return 0
    return SPAN_BYTES.get(swizzle, 128) * 8 // BITS[element]


def element_of(storage: Storage) -> Element:
    """The element of a storage as the TMA unit sees it."""
    return _ELEMENTS.get(storage.dtype) or _UNSIGNED[storage.dtype.bits]


def run_of(storage: Storage, rows: int) -> int:
    """Rows of a tile that one copy brings: those of a page that lie next to each other.

    Raises:
        ProblemError: pages are not a multiple of them, nor they of a page.

    """
    if storage.kind != "Paged":
        return rows
    run = min(rows, storage.page)
    if storage.page % run or rows % run:
        rule = f"a tile of {rows} rows needs pages that divide it or are a multiple of it"
        raise ProblemError(f"`tile`: {rule}, not {storage.page}", where=f"kv.{storage.kind}")
    return run


def tile(
    storage: Storage,
    address: int,
    *,
    rows: int,
    swizzle: Swizzle = Swizzle.B128,
    depth: int = 0,
) -> TensorMap:
    """Tiles of one head: `rows` tokens of `depth` elements, all of the head's without it.

    Args:
        storage: where rows lie.
        address: of virtual row 0, bytes.
        rows: of a tile, in runs that `run_of` gives.
        swizzle: its width is that of a column block.
        depth: elements of a head that may be loaded.

    Raises:
        TensorMapError: a rule of the TMA unit is broken; names storage, constructor and rule.
        ProblemError: pages do not fit the tile.

    """
    element, depth = element_of(storage), depth or storage.head_size
    head_bytes = storage.dtype.bytes_of(storage.head_size)
    made = TensorMap(
        name="tile",
        element=element,
        address=address,
        dims=(depth, storage.heads, storage.num_kv_rows),
        strides_bytes=(head_bytes, storage.row_bytes),
        box=(block_width(element, swizzle) or depth, 1, run_of(storage, rows)),
        element_strides=(1, 1, 1),
        swizzle=swizzle,
    )
    return _checked(storage, made)


def ragged_tile(
    storage: Storage,
    address: int,
    *,
    rows: int,
    swizzle: Swizzle = Swizzle.B128,
    front_rows: int | None = None,
) -> TensorMap:
    """Tiles that end with their sequence: rows past the count are zeros, or not stored.

    Two dimensions have the stride of a row, and the tensor begins `rows` rows before row 0. To
    touch `count` rows of head h from row r on, start at (column, rows - count,
    (r + count) * heads + h). The memory in front must be mapped, though none of it is read.

    Args:
        storage: where rows lie.
        address: of virtual row 0, bytes.
        rows: of a tile.
        swizzle: its width is that of a column block.
        front_rows: rows of mapped memory before row 0; None: those of the storage's own array.

    Raises:
        TensorMapError: a rule of the TMA unit is broken; names storage, constructor and rule.
        ProblemError: there is too little memory in front.

    """
    element, head_bytes = element_of(storage), storage.dtype.bytes_of(storage.head_size)
    known = storage.offset_bytes // storage.row_bytes if front_rows is None else front_rows
    if known < rows:
        rule = f"{rows} rows of mapped memory must lie before row 0, not {known}"
        hint = "allocate rows in front, or load a plain tile and zero its tail"
        raise ProblemError(f"`ragged_tile`: {rule}", where=f"kv.{storage.kind}", hint=hint)
    made = TensorMap(
        name="ragged_tile",
        element=element,
        address=address - rows * storage.row_bytes,
        dims=(storage.head_size, rows, (storage.num_kv_rows + 1) * storage.heads),
        strides_bytes=(storage.row_bytes, head_bytes),
        box=(block_width(element, swizzle) or storage.head_size, rows, 1),
        element_strides=(1, 1, 1),
        swizzle=swizzle,
    )
    return _checked(storage, made)


def scale_tile(storage: Storage, address: int, *, rows: int) -> TensorMap:
    """Scales of a tile's rows, one a row and head: fp32 [heads, rows], a head's side by side.

    Of a cache they are those of virtual rows. A tile starts at a multiple of 4 rows, for boxes
    start at 16 bytes; with several heads the rows are a multiple of 4 too, as strides are of 16
    bytes.

    Args:
        storage: where rows lie.
        address: of the first scale, bytes.
        rows: of a tile, in runs that `run_of` gives.

    Raises:
        TensorMapError: a rule of the TMA unit is broken; names storage, constructor and rule.
        ProblemError: pages do not fit the tile.

    """
    pitch = 4 * storage.num_kv_rows
    made = TensorMap(
        name="scale_tile",
        element=Element.FP32,
        address=address,
        dims=(storage.num_kv_rows, storage.heads),
        strides_bytes=(pitch if storage.heads > 1 else -(-pitch // 16) * 16,),
        box=(run_of(storage, rows), 1),
        element_strides=(1, 1),
    )
    return _checked(storage, made)


def rope_tile(
    storage: Storage, address: int, *, rows: int, swizzle: Swizzle = Swizzle.B128
) -> TensorMap:
    """Tiles of the rope values at the end of an MLA row whose latent is of another type.

    Raises:
        TensorMapError: a rule of the TMA unit is broken; names storage, constructor and rule.
        ProblemError: rows have no rope of their own type.

    """
    offset, rope = _rope(storage, "rope_tile")
    made = TensorMap(
        name="rope_tile",
        element=Element.BF16,
        address=address + offset,
        dims=(rope, 1, storage.num_kv_rows),
        strides_bytes=(storage.row_bytes, storage.row_bytes),
        box=(block_width(Element.BF16, swizzle) or rope, 1, run_of(storage, rows)),
        element_strides=(1, 1, 1),
        swizzle=swizzle,
    )
    return _checked(storage, made)


def gather4(
    storage: Storage,
    address: int,
    *,
    width: int = 0,
    swizzle: Swizzle = Swizzle.NONE,
    element: Element | None = None,
    promotion: Promotion = Promotion.NONE,
) -> TensorMap:
    """Rows named one by one: `width` elements from their start, all without it.

    Rows of bytes are gathered without a swizzle as elements of 8 bytes: 72 of a row of 576, the 64
    latent ones of a row of 640 or 656. (All 82 of the latter would not do: four rows are written at
    once, and must begin at a multiple of 128 bytes.)

    Args:
        storage: where rows lie.
        address: of virtual row 0, bytes.
        width: elements, of the type they are taken for.
        swizzle: its width is that of a column group; without one a group is `width`.
        element: what elements are taken for; the storage's own without it.
        promotion: what L2 fetches around what is read.

    Raises:
        TensorMapError: a rule of the TMA unit is broken; names storage, constructor and rule.

    """
    kind = element_of(storage) if element is None else element
    width = width or storage.row_bytes * 8 // BITS[kind]
    made = TensorMap(
        name="gather4",
        element=kind,
        address=address,
        dims=(width, storage.num_kv_rows),
        strides_bytes=(storage.row_bytes,),
        box=(block_width(kind, swizzle) or width, 1),
        element_strides=(1, 1),
        swizzle=swizzle,
        promotion=promotion,
        gather4=True,
    )
    return _checked(storage, made)


def rope_gather4(
    storage: Storage,
    address: int,
    *,
    swizzle: Swizzle = Swizzle.B128,
    promotion: Promotion = Promotion.NONE,
) -> TensorMap:
    """Rope values of rows named one by one, of MLA rows whose latent is of another type.

    Raises:
        TensorMapError: a rule of the TMA unit is broken; names storage, constructor and rule.
        ProblemError: rows have no rope of their own type.

    """
    offset, rope = _rope(storage, "rope_gather4")
    made = TensorMap(
        name="rope_gather4",
        element=Element.BF16,
        address=address + offset,
        dims=(rope, storage.num_kv_rows),
        strides_bytes=(storage.row_bytes,),
        box=(block_width(Element.BF16, swizzle) or rope, 1),
        element_strides=(1, 1),
        swizzle=swizzle,
        promotion=promotion,
        gather4=True,
    )
    return _checked(storage, made)


def _rope(storage: Storage, member: str) -> tuple[int, int]:
    """Bytes to the rope values of a row, and how many there are."""
    row = storage.row
    if row.rope_dtype is not DType.BF16 or row.dtype is DType.BF16:
        what = f"`{member}`: {row.name} rows have no rope of another type than their latent"
        raise ProblemError(what, where=f"kv.{storage.kind}", hint="load it with the latent")
    return row.rope_offset, row.rope


def _checked(storage: Storage, made: TensorMap) -> TensorMap:
    try:
        check(made)
    except TensorMapError as error:
        where = f"kv.{storage.kind}: {error.where}"
        raise TensorMapError(error.what, where=where, hint=error.hint) from error
    return made
