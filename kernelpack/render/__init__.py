"""A variant and its template → a Source whose every line still says where it was written."""
