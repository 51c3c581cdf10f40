"""Sparse attention of absorbed MLA: every head of a token over the same chosen rows of a cache."""
