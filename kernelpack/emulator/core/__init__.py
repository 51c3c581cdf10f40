"""The compiled engine: runs a launch with which all is well, many times as fast as the Python one.

It is C++, compiled on first use. It says nothing about a kernel: where a rule may be broken, where
an instruction is not written here, or where a bit is not certain, it gives up, memory is as it was,
and the Python engine runs the launch and says what there is to say. See docs/adr/0043.
"""
