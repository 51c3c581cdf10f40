"""PTX on the CPU: what a kernel computes, and what is wrong with it.

`run.run(program, plan, memory)` runs a launch that is described like one for a GPU;
`launch(ptx, name, grid, block, *arguments)` runs one on numpy arrays.
"""
