"""Processes that work side by side, as many as memory allows: for builds and for verification."""
