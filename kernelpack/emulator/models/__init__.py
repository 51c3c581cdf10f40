"""The hardware units as pure functions: what address, which cell, what number.

Nothing here holds state or memory: a model takes numbers and index arrays and returns them; the
machine owns memory and moves bytes, checks look at the same index arrays. A kernel that misuses a
unit gives a `Misuse` value, or `UnitFault` where there is no way to go on.
"""
