"""The error for a builder whose packages are not installed."""

from collections.abc import Iterator
from contextlib import contextmanager

from kernelpack.errors import KernelpackError, install_extra


@contextmanager
def needs_builder(words: str) -> Iterator[None]:
    """Import what `kernelpack WORDS` needs of the builder.

    Raises:
        KernelpackError: a package of it is not installed.

    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise KernelpackError(
            f"`kernelpack {words}` needs the builder, and `{error.name}` is not installed",
            hint=install_extra("build"),
        ) from error
