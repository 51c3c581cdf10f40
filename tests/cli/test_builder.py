"""Where the builder is not installed."""

import pytest

from kernelpack.cli.builder import needs_builder
from kernelpack.errors import KernelpackError


def test_missing():
    """The words that need it, the package that is missing, and how to get it."""
    with pytest.raises(KernelpackError) as caught, needs_builder("check --rebuild"):
        raise ModuleNotFoundError(name="jinja2")
    assert str(caught.value) == (
        "`kernelpack check --rebuild` needs the builder, and `jinja2` is not installed\n"
        "hint: pip install '.[build]' in a checkout of kernelpack"
    )


def test_there():
    """What is installed is imported, and nothing is printed."""
    with needs_builder("check --rebuild"):
        assert True
