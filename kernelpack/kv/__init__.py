"""KV operands: what a caller hands to an op that reads or writes a cache.

    cache = kernelpack.kv.Paged(blocks, table=block_table, lengths=lengths)
    kernelpack.ops.sparse_mla_prefill(q, cache, indices)

Arrays are of any framework; nothing is looked at before a call. An array of rows alone,
[rows, row], is `Ragged(rows)`, which ops take it for.
"""

from kernelpack.kv.operand import Continuous, Operand, Padded, Paged, Ragged, operand

__all__ = ["Continuous", "Operand", "Padded", "Paged", "Ragged", "operand"]
