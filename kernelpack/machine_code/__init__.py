"""Machine code read as instructions and paths, and the rules that no compiler checks."""
