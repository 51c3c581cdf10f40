"""The KV operand: where the rows of keys and values lie, as numbers, and their tensor maps.

`rows` are the formats of a row, `storage` where row t of a cache lies, `maps` the tensor maps over
it. Kernels see the same through `templates/include/kp/kv`; callers through `kernelpack.kv`.
"""
