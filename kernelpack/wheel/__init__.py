"""A bundle → wheels of data, one for each architecture, which `kernelpack.load()` finds."""
