"""A decode step of MLA before it attends: absorbed queries, and new rows of the cache."""
