"""New tokens into an MLA cache."""
