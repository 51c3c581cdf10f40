"""Number formats in numpy: what the bits of each type mean, how PTX converts between them.

`dtype` names the types, `narrow` decodes and rounds, `convert` is PTX `cvt` on 32-bit lanes,
`packing` puts sub-byte elements into bytes, `scale_layout` places block scales, `grouped_scales`
those of grouped rows. Thin faces over
ml_dtypes plus what it lacks; nothing here knows a kernel, a GPU or the emulator.
"""
