"""NVFP4 quantiser: its problems, its inputs, and its oracle in numpy."""
