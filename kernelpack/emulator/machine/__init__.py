"""The state of a GPU while a kernel runs: memories, warps, CTAs, clusters. No instruction."""
