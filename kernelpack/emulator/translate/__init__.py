"""Statements → functions: what `semantics` says of each instruction becomes code that a warp runs.

`translate` cuts an entry into nodes. `generate` makes a Python function of a block, after `fits`
has checked its statements. `refusals` names what an entry holds that is not modelled.
"""
