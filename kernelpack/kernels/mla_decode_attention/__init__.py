"""Attention of an MLA decode step: listed rows or pages, split among CTAs."""
