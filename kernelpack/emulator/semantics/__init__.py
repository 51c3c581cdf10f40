"""The semantics of each instruction: one table, a file a family.

`table` is the joint between a decoded instruction and whatever runs it: an `Op` says which types
and modifiers are legal, what its operands are, and builds a handler. `emulator.translate` turns
the blocks of an entry into calls of those handlers.
"""
