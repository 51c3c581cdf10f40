"""Variants held against the float64 oracle on the emulator: what was proven, and what was not."""
