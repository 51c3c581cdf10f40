"""From a plan to the GPU: the driver, kernels made ready, tensor maps, launches. Knows no kernel.

Importing this package touches no driver; `driver.connect` does.
"""
