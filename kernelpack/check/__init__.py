"""Check a bundle against itself: structure, digests, and each cubin against the index."""
