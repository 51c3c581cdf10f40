"""Outputs of absorbed MLA times W_UV, quantised on the way."""
