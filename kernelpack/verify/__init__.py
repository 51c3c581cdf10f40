"""Check variants against the float64 oracle on the emulator: what is proven, and what is not."""
