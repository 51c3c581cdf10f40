"""All of kernelpack's kernels, built once for the whole run, whatever number of workers it has."""

from tests.machine_code.conftest import bundle

__all__ = ["bundle"]
