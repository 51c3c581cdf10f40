"""Machine code read as instructions and paths, and held against rules that no compiler checks."""
