"""Compilers and what they make: find them, source to PTX, PTX to cubin, read a cubin."""
