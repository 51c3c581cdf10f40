"""A bundle → wheels of data, one a family of targets, that `kernelpack.load()` finds installed."""
