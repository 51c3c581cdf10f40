"""KV operands among an op's arrays: from a caller's cache to the bytes of its rows.

An op gives the operand's arrays as the inputs `kv` and `kv_scales`; `located` puts what a kernel
is to see in their place: the rows of one layer, from the first to the last, wherever the caller's
array has them.
"""

from dataclasses import dataclass

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.storage import Scales, Storage
from kernelpack.kv import Operand
from kernelpack.ops.arrays import DeviceArray
from kernelpack.ops.operation import Views

ROWS, SCALES = "kv", "kv_scales"
"""The arguments of a manifest that an operand becomes: bytes [rows * row], fp32 [rows * scales]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRows(DeviceArray):
    """The bytes of a storage's rows, u8 [num_kv_rows * row_bytes]."""

    storage: Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredScales(DeviceArray):
    """The scales of a storage's rows, fp32 [num_kv_rows * per_row]."""

    scales: Scales


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
