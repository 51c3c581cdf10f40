"""KV operands among an op's arrays: from a caller's cache to the bytes of its rows.

An op gives the operand's arrays as the inputs `kv` and `kv_scales`; `located` puts what a kernel
is to see in their place: the rows of one layer, from the first to the last, wherever the caller's
array has them.
"""

from dataclasses import dataclass, replace

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.lookup import Lookup
from kernelpack.kernels.kv_operand.storage import Scales, Storage
from kernelpack.kv import Continuous, Operand, Padded, Paged, Ragged
from kernelpack.ops.appended import sequences_of
from kernelpack.ops.arrays import Array, DeviceArray
from kernelpack.ops.checks import check_array, require
from kernelpack.ops.operation import Form, Views
from kernelpack.ops.spread import spread, spread_of

INTEGERS = (DType.I32, DType.U32)
"""Types of tables, lengths and offsets: as u32 what is negative is large, and absent too."""

ROWS, SCALES = "kv", "kv_scales"
"""The arguments of a manifest that an operand becomes: bytes [rows * row], fp32 [rows * scales]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRows(DeviceArray):
    """The bytes of a storage's rows, u8 [num_kv_rows * row_bytes].

    Attributes:
        storage: where they lie.
        sides: of the array that holds them.

    """

    storage: Storage
    sides: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredScales(DeviceArray):
    """The scales of a storage's rows, fp32 [num_kv_rows * per_row]."""

    scales: Scales


def of_tensors(
    kv: Array, scales: Array, table: Array = None, lengths: Array = None
) -> Paged | Ragged:
    """An operand from tensors: rows alone [rows, row], or blocks [blocks, page, .., row].

    The first row of each block names it, so FlashMLA's [rows, 1, d] is as good as rows alone.
    """
    if len(kv.shape) == len(("rows", "row")):
        return Ragged(kv, scales=scales)
    return Paged(kv, scales=scales, table=table, lengths=lengths)


def located(kv: Operand, views: Views) -> Views:
    """The views with the operand's rows, and scales where it has them, as a kernel sees them.

    Raises:
        ProblemError: a rule about the operand's sides is broken; names storage, member and rule.

    """
    whole = views[ROWS]
    storage = kv.storage(whole)
    rows = StoredRows(
        pointer=whole.pointer + storage.offset_bytes,
        shape=(storage.num_kv_rows * storage.row_bytes,),
        dtype=DType.U8,
        device=whole.device,
        is_read_only=whole.is_read_only,
        storage=storage,
        sides=whole.shape,
    )
    if SCALES not in views:
        return {**views, ROWS: rows}
    scales = kv.scales_of(storage, views[SCALES])
    beside = _scales(views[SCALES], scales, storage.num_kv_rows)
    return {**views, ROWS: rows, SCALES: beside}


def _scales(whole: DeviceArray, scales: Scales, rows: int) -> StoredScales:
    return StoredScales(
        pointer=whole.pointer + scales.offset_bytes,
        shape=(rows * scales.per_row,),
        dtype=DType.FP32,
        device=whole.device,
        is_read_only=whole.is_read_only,
        scales=scales,
    )


def storage_of(views: Views) -> Storage:
    """Where the rows of a located operand lie."""
    rows = views[ROWS]
    assert isinstance(rows, StoredRows), "the request has no `located`"
    return rows.storage


def scales_of(views: Views, kv: Operand) -> Scales | None:
    """The scales of a located operand, as its row format asks for them; None where it has none.

    Raises:
        ProblemError: they are missing, or given where the format has none, or too many a row.

    """
    row, where = storage_of(views).row, f"kv.{type(kv).__name__}"
    given = views.get(SCALES)
    if given is None:
        if row.array_scales == "always":
            raise ProblemError(
                f"`scales` must be given: {row.name} rows have one each", where=where
            )
        return None
    assert isinstance(given, StoredScales), "the request has no `located`"
    if row.array_scales == "never":
        raise ProblemError(f"`scales` must be left out: {row.name} rows have no array", where=where)
    if not row.block_of(given.scales.per_head):
        counts = " or ".join(str(-(-row.width // block)) for block in row.scale_blocks)
        found = given.scales.per_head
        raise ProblemError(f"`scales`: {counts} a row of {row.name}, not {found}", where=where)
    return given.scales


# --- whose rows they are ---

LOOKUP = {
    "table": Form(dims="entries", dtypes=INTEGERS),
    "offsets": Form(dims="sequences+1", dtypes=INTEGERS),
}
"""The arguments that say where a sequence's tokens are, as `looked_up` has them."""


def lookup_arrays(kv: Operand) -> tuple[Array, Array]:
    """The arrays of an operand that say where a sequence's tokens are: table and offsets.

    Raises:
        ProblemError: the operand has none, and its storage needs one.

    """
    where = f"kv.{type(kv).__name__}"
    match kv:
        case Paged(table=table):
            require(table is not None, "`table` must be given, to find tokens by", where)
            return table, None
        case Continuous(table=table):
            return table, None
        case Ragged(offsets=offsets):
            require(offsets is not None, "`offsets` must be given, to find tokens by", where)
            return None, offsets
    return None, None


def looked_up(kv: Operand, views: Views) -> Views:
    """The views with the operand's table as the memory that a kernel looks at.

    Raises:
        ProblemError: it has other sides or types than a table; names storage and member.

    """
    where = f"kv.{type(kv).__name__}"
    if "offsets" in views:
        check_array(views["offsets"], "offsets", "sequences+1", INTEGERS, where)
    if "table" not in views:
        return views
    dims = "sequences pages" if isinstance(kv, Paged) else "sequences"
    check_array(views["table"], "table", dims, INTEGERS, where)
    return {**views, "table": spread(views["table"], "table", where)}


def lookup_of(kv: Operand, views: Views) -> Lookup:
    """Where tokens of sequences are, of an operand that is located and looked up."""
    storage = storage_of(views)
    by_number = Lookup(sequences=storage.blocks, page=storage.page, blocks=storage.blocks)
    table = spread_of(views["table"]) if "table" in views else None
    if isinstance(kv, Padded):
        sequences, length = _sides_of(views)[:2]
        return Lookup(sequences=sequences, page=length, blocks=sequences)
    if isinstance(kv, Ragged):
        sequences = sequences_of(views["offsets"], "offsets", "kv.Ragged")
        return replace(by_number, sequences=sequences, has_offsets=True)
    if table is None:
        return by_number
    pages = table.sides[1] if isinstance(kv, Paged) else 1
    return replace(
        by_number,
        sequences=table.sides[0],
        pages=pages,
        table_stride=table.steps[0],
        has_table=True,
    )


def _sides_of(views: Views) -> tuple[int, ...]:
    rows = views[ROWS]
    assert isinstance(rows, StoredRows), "the request has no `located`"
    return rows.sides
