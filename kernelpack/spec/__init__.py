"""The vocabulary of kernelpack: frozen values and pure rules. No input or output, no driver."""
