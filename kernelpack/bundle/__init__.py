"""The bundle: one file of compiled kernels, with everything a program needs to launch them."""
