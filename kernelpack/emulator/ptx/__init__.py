"""PTX text → Program. Knows the grammar and the layout of symbols, nothing of running."""
