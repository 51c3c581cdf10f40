"""Host programs whose kernels run on the emulator: a stand-in for the CUDA runtime and driver.

`emulate.emulate(program, options)` starts a program with the stand-in instead of libcudart and
libcuda. Device memory is a mapping that both sides see; every launch comes here and is run by
`kernelpack.emulator`. Work of a stream has ended when its call returns: one of the orders that
streams allow, so that races between streams are not seen.
"""
