"""What a decode step of MLA does before it attends: absorbed queries, and new rows of the cache."""
