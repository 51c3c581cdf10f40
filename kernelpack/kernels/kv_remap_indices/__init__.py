"""Logical indices of tokens to encoded ones of a KV storage."""
