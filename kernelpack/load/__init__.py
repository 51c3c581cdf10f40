"""A bundle and a driver together: kernels that are ready to launch."""
